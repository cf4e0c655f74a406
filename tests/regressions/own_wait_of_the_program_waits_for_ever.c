// A program with an MPI_Wait of its own, as one that a profiling library is linked into has: it completes requests by PMPI_Wait,
// which nothing tells of what Stretto has started. Such a program is left to MPI.
#include <mpi.h>
#include <stdio.h>

static int waits;
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return PMPI_Wait(request, status);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, value = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Request request;
  for (int round = 0; round < 10; ++round) {
    value = rank + round;
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  const int wrong = sum != 1 + 2 * 9 || waits != 10;
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
