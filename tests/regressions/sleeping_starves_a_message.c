/* A rank that slept in a collective gave MPI one round of progress each half a millisecond, and a message that goes in pieces one
 * piece: eight MiB took more than a thousand naps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { bytes = 8 << 20, most_naps = 400 };

static long naps(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* data = calloc(bytes, 1);
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const long before = naps();
    MPI_Isend(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const long slept = naps() - before;
    printf("%s: %ld naps\n", slept < most_naps ? "right" : "wrong", slept);
  } else {
    MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  free(data);
  MPI_Finalize();
  return 0;
}
