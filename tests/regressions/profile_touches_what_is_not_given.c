// A profile looked at arguments that do not count on this rank, and put the handles of requests that were waited for after this
// thread's C++ destructors into memory that had been freed: of the program by then.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { many = 40, small = 2 };

static int rank, wrong;

static MPI_Datatype no_type(void) {
  MPI_Datatype type;
  memset(&type, 0x15, sizeof type);
  return type;
}

static void exchange(int count) {
  MPI_Request requests[2 * many];
  int out[many], in[many];
  for (int i = 0; i < count; ++i) {
    out[i] = rank + i, in[i] = -1;
    MPI_Irecv(&in[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &requests[2 * i]);
    MPI_Isend(&out[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
  }
  MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i) wrong |= in[i] != 1 - rank + i;
}

static void at_the_end(void) {
  enum { blocks = 64 };
  static unsigned char* mine[blocks];
  static const size_t bytes[] = {64, 576, 4096, 8192};
  for (int i = 0; i < blocks; ++i) {
    const size_t n = bytes[i % 4];
    mine[i] = malloc(n);
    memset(mine[i], 0xa5, n);
  }
  exchange(many);
  exchange(small);
  for (int i = 0; i < blocks; ++i)
    for (size_t k = 0; k < bytes[i % 4]; ++k) wrong |= mine[i][k] != 0xa5;
  MPI_Finalize();
  if (!wrong) printf("rank %d: right\n", rank);
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype number = rank == 0 ? MPI_INT : no_type(), ignored = no_type();
  int own = rank + 1, all[2] = {1, 0};
  MPI_Gather(rank == 0 ? MPI_IN_PLACE : &own, 1, rank == 0 ? ignored : MPI_INT, all, 1, number, 0, MPI_COMM_WORLD);
  wrong |= rank == 0 && (all[0] != 1 || all[1] != 2);
  MPI_Scatter(all, 1, number, rank == 0 ? MPI_IN_PLACE : &own, 1, rank == 0 ? ignored : MPI_INT, 0, MPI_COMM_WORLD);
  wrong |= own != rank + 1;
  MPI_Allgather(MPI_IN_PLACE, 1, ignored, all, 1, MPI_INT, MPI_COMM_WORLD);
  exchange(many);
  atexit(at_the_end);
  return 0;
}
