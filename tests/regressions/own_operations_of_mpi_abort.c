/* An operation of the MPI library's own that Stretto does not know (MPIX_EQUAL of MPICH 4.2 and later) was taken for one that the
 * program had made, and given to MPI_Reduce_local, where it ends the job.
 */
#include <mpi.h>
#include <stdio.h>

#ifdef MPIX_EQUAL
static int check(int rank) {
  int mine[2] = {7, 8}, equal = -1, differs = -1, of_root = -1;
  MPI_Allreduce(mine, &equal, 1, MPI_INT, MPIX_EQUAL, MPI_COMM_WORLD);
  MPI_Allreduce(&rank, &differs, 1, MPI_INT, MPIX_EQUAL, MPI_COMM_WORLD);
  MPI_Reduce(mine, &of_root, 2, MPI_INT, MPIX_EQUAL, 0, MPI_COMM_WORLD);
  return equal == 1 && differs == 0 && (rank != 0 || of_root == 1);
}
#else
static int check(int rank) {
  return rank >= 0;
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int right = check(rank), all;
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && all) printf("right\n");
  MPI_Finalize();
  return 0;
}
