// Types made of those that MPI_Type_create_f90_real, _complex and _integer give, which are predefined: looking whether their
// elements have gaps Stretto freed them, and Open MPI ended the job.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype base[3], made;
  MPI_Type_create_f90_real(15, MPI_UNDEFINED, &base[0]);
  MPI_Type_create_f90_integer(9, &base[1]);
  MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &base[2]);
  for (int i = 0; i < 3; ++i) {
    int bytes;
    MPI_Type_size(base[i], &bytes);
    for (int round = 0; round < 2; ++round) {
      char values[2][16], all[4][16];
      for (int b = 0; b < 2 * bytes; ++b) ((char*)values)[b] = (char)(50 * rank + b);
      if (round == 0)
        MPI_Type_contiguous(2, base[i], &made);
      else
        MPI_Type_dup(base[i], &made);
      MPI_Type_commit(&made);
      const int count = round == 0 ? 1 : 2;
      for (int turn = 0; turn < 3; ++turn) MPI_Allgather(values, count, made, all, count, made, MPI_COMM_WORLD);
      for (int b = 0; b < 4 * bytes; ++b) wrong += ((char*)all)[b] != (char)(50 * (b / (2 * bytes)) + b % (2 * bytes));
      MPI_Type_free(&made);
    }
  }
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
