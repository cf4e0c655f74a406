/* One element of 3 GiB at the root against three of 1 GiB elsewhere: the root alone left the broadcast to MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  size_t bytes = (size_t)3 << 30;
  char* data = malloc(bytes);
  MPI_Datatype one, three;
  MPI_Type_contiguous(1 << 30, MPI_BYTE, &one);
  MPI_Type_contiguous(3, one, &three);
  MPI_Type_commit(&one);
  MPI_Type_commit(&three);
  data[bytes - 1] = rank == 0 ? 7 : 0;
  if (rank == 0)
    MPI_Bcast(data, 1, three, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(data, 3, one, 0, MPI_COMM_WORLD);
  int right = data[bytes - 1] == 7, all;
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && all) printf("right\n");
  free(data);
  MPI_Finalize();
  return 0;
}
