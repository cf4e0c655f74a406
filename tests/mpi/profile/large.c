/* More bytes than 32 bits count, without that much memory; communicators by the thousand; MPI_Pcontrol. */
#include "truth.h"

#define W "MPI_COMM_WORLD"

int main(int argc, char** argv) {
  MPI_Datatype mega;
  MPI_Comm comm, kept[500];
  int i, one = 1, sum;
  long long bytes = 5000LL << 20;
  MPI_Init(&argc, &argv);
  begin_truth();
  MPI_Type_contiguous(1 << 20, MPI_CHAR, &mega);
  MPI_Type_commit(&mega);
  MPI_Bcast(&one, 5000, mega, 0, MPI_COMM_SELF), did_collective("MPI_Bcast", "MPI_COMM_SELF", bytes, 0, 0);
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win),
      did_collective("MPI_Win_create_dynamic", "MPI_COMM_SELF", 0, 0, NOBODY);
  MPI_Win_free(&win), did("MPI_Win_free", "MPI_COMM_SELF", 0, 0, NOBODY, 0);
  MPI_Type_free(&mega);
  for (i = 0; i < 500; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &kept[i]), did_collective("MPI_Comm_dup", "MPI_COMM_SELF", 0, 0, NOBODY);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, kept[i]);
    did("MPI_Allreduce", "duplicate_of_MPI_COMM_SELF", 4, 4, NOBODY, 0);
  }
  for (i = 0; i < 500; ++i) MPI_Comm_free(&kept[i]), did("MPI_Comm_free", "duplicate_of_MPI_COMM_SELF", 0, 0, NOBODY, 0);
  for (i = 0; i < 5000; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &comm), did_collective("MPI_Comm_dup", "MPI_COMM_SELF", 0, 0, NOBODY);
    MPI_Comm_free(&comm), did("MPI_Comm_free", "duplicate_of_MPI_COMM_SELF", 0, 0, NOBODY, 0);
  }
  MPI_Pcontrol(3), did("MPI_Pcontrol", "-", 0, 0, NOBODY, 0);
  MPI_Barrier(MPI_COMM_WORLD), did_collective("MPI_Barrier", W, 0, 0, NOBODY);
  MPI_Pcontrol(0); /* unseen from here, but the numbers of collectives go on */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Pcontrol(1), did("MPI_Pcontrol", "-", 0, 0, NOBODY, 0);
  fprintf(truth_file, "unseen MPI_COMM_WORLD\n");
  MPI_Barrier(MPI_COMM_WORLD), did_collective("MPI_Barrier", W, 0, 0, NOBODY);
  end_truth();
  return MPI_Finalize();
}
