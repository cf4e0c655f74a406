/* Collectives that never wait drove MPI's progress never, so that a large message between the same ranks stood still. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { bytes = 16 << 20, most_rounds = 200000 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* data = calloc(bytes, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Isend(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Irecv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
  int received = rank != 1, all = 0;
  for (int round = 0; round < most_rounds && !all; ++round) {
    if (rank == 1 && !received) MPI_Test(&request, &received, MPI_STATUS_IGNORE);
    MPI_Allreduce(&received, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0 && all) printf("right\n");
  free(data);
  MPI_Finalize();
  return 0;
}
