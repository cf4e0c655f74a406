/* Ranks of the second node come late to each collective, and the second rank of each node later than its first. Prints
 * "arrived RANK ROUND NANOSECONDS" (CLOCK_MONOTONIC, which all emulated nodes share), and sends two messages of known size. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double step = 0.02; /* s */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void until(double when) {
  double left;
  while ((left = when - now()) > 0) {
    struct timespec t = {0, (long)(left * 1e9 > 1e6 ? left * 0.5e9 : 1e5)};
    nanosleep(&t, NULL);
  }
}

int main(int argc, char** argv) {
  int rank, size, round, rounds, count;
  double begin, arrived[1000];
  float *in, *out;
  char message[1000] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rounds = atoi(argv[1]);
  count = atoi(argv[2]);
  in = calloc(count, sizeof *in);
  out = calloc(count, sizeof *out);
  begin = now() + 0.1;
  MPI_Bcast(&begin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (round = 0; round < rounds; ++round) {
    until(begin + step * (round * 2 * size + rank % 2 + 4 * (rank / 2)));
    arrived[round] = now();
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  for (round = 0; round < rounds; ++round) printf("arrived %d %d %.0f\n", rank, round, arrived[round] * 1e9);
  if (rank == 0) {
    MPI_Send(message, 100, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Send(message, 1000, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
  }
  if (rank == 1) MPI_Recv(message, 100, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == size - 1) MPI_Recv(message, 1000, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(in);
  free(out);
  return MPI_Finalize();
}
