/* A datatype made by a large-count function made MPICH abort when Stretto asked how it was made by the function for int counts.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, values[10] = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype ten;
#if MPI_VERSION >= 4
  MPI_Type_contiguous_c(10, MPI_INT, &ten);
#else
  MPI_Type_contiguous(10, MPI_INT, &ten);
#endif
  MPI_Type_commit(&ten);
  if (rank == 0) values[9] = 5;
  MPI_Bcast(values, 1, ten, 0, MPI_COMM_WORLD);
  int right = values[9] == 5, all;
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && all) printf("right\n");
  MPI_Type_free(&ten);
  MPI_Finalize();
  return 0;
}
