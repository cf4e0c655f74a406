/* Where a launcher starts each rank in a session of its own, a rank that yielded in a loop used up half of the CPU that it shares
 * with the one it waited for. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Whatever CPU the launcher gave this rank: all of those that there are, then the first. */
static void share_one_cpu(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (found) CPU_CLR(cpu, &allowed);
    found |= CPU_ISSET(cpu, &allowed) != 0;
  }
  sched_setaffinity(0, sizeof allowed, &allowed);
}

int main(int argc, char** argv) {
  share_one_cpu();
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double one = 1, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double begin = cpu_seconds();
  for (int step = 0; step < 60; ++step) {
    for (const double start = cpu_seconds(); rank == 0 && cpu_seconds() - start < 5e-3;) continue;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  double used = cpu_seconds() - begin, least;
  MPI_Allreduce(&used, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s: the rank that waits used %.0f %% of what the other did\n", least < used / 4 ? "right" : "wrong",
           100 * least / used);
  MPI_Finalize();
  return 0;
}
