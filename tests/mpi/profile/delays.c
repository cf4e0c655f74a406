/* Collectives that ranks reach late on purpose: which one is late, and in which order they come, changes with each. What the
 * truth holds is when a rank really came: "arrived SEQUENCE NANOSECONDS" (CLOCK_MONOTONIC). */
#include <time.h>

#include "truth.h"

#define ROUNDS 12
static const double step = 0.03; /* s */

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
  int round;
  double begin, data = 1, sum;
  MPI_Init(&argc, &argv);
  begin_truth();
  named("MPI_COMM_WORLD", MPI_COMM_WORLD);
  begin = now() + 0.1;
  MPI_Bcast(&begin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD),
      did_collective("MPI_Bcast", "MPI_COMM_WORLD", rank ? 0 : 8, rank ? 8 : 0, 0);
  for (round = 0; round < ROUNDS; ++round) {
    const int place = (rank * (size > 2 && round % 2 ? size - 1 : 1) + round) % size;
    until(begin + round * (size + 1) * step + place * step);
    fprintf(truth_file, "arrived %d %.0f\n", round + 1, now() * 1e9);
    if (round % 3 == 0) {
      MPI_Barrier(MPI_COMM_WORLD), did_collective("MPI_Barrier", "MPI_COMM_WORLD", 0, 0, NOBODY);
    } else {
      MPI_Allreduce(&data, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      did_collective("MPI_Allreduce", "MPI_COMM_WORLD", 8, 8, NOBODY);
    }
  }
  end_truth();
  return MPI_Finalize();
}
