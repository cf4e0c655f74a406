/* The first memory that MPI_Iallreduce asks for is refused on the last rank, which Stretto must not leave to MPI alone. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void* __libc_malloc(size_t bytes);
static int refusals, refused;

void* malloc(size_t bytes) {
  if (refusals > 0 && bytes >= 128) {
    --refusals;
    ++refused;
    return NULL;
  }
  return __libc_malloc(bytes);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, sums[2] = {0, 0}, one = 1, good = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 20; ++i) {
    MPI_Request requests[2];
    if (i == 0 && rank == size - 1) refusals = 1;
    MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    refusals = 0;
    MPI_Iallreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    good = good && sums[0] == size && sums[1] == size;
    sums[0] = sums[1] = 0;
  }
  int least[2], mine[2] = {good, rank < size - 1 || refused == 1};
  MPI_Reduce(mine, least, 2, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) puts(!least[1] ? "nothing was refused" : least[0] ? "right" : "wrong");
  MPI_Finalize();
  return 0;
}
