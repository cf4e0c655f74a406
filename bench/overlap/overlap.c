// How much of a nonblocking collective is hidden behind computation.
//
//   overlap [MiB [repetitions [allreduce|allgather|alltoall]]]
//
// MiB are those of each rank's result. Three times are measured on every rank, of which the slowest counts: the operation alone
// (start and wait), the computation alone, which takes as long, and both at once. The computation calls no MPI. Overlap is the
// part of the shorter one that is hidden: (operation + computation - both) / min(operation, computation).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile double sink;
static const char* collective = "allreduce";
static int size;

static void compute(long rounds) {
  double x = 1.0;
  for (long i = 0; i < rounds; ++i) x = x * 1.0000001 + 1e-9;
  sink = x;
}

static double slowest(double own) {
  double all;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

static void start(float* in, float* out, int count, MPI_Request* request) {
  const int block = count / size;
  if (strcmp(collective, "allgather") == 0)
    MPI_Iallgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD, request);
  else if (strcmp(collective, "alltoall") == 0)
    MPI_Ialltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD, request);
  else
    MPI_Iallreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
}

static double timed(float* in, float* out, int count, long rounds) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  if (count) start(in, out, count, &request);
  compute(rounds);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return slowest(MPI_Wtime() - begin);
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* times, int n) {
  qsort(times, (size_t)n, sizeof *times, by_value);
  return times[n / 2];
}

int main(int argc, char** argv) {
  int rank, repetitions = argc > 2 ? atoi(argv[2]) : 9;
  int count = (argc > 1 ? atoi(argv[1]) : 64) * (1 << 18);
  if (argc > 3) collective = argv[3];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float* in = malloc(4 * (size_t)count);
  float* out = malloc(4 * (size_t)count);
  double* times[3];
  for (int k = 0; k < 3; ++k) times[k] = malloc((size_t)repetitions * sizeof(double));
  for (int i = 0; i < count; ++i) in[i] = out[i] = 1.0f;
  double operation = 0;
  for (int i = 0; i < repetitions; ++i) operation = times[0][i] = timed(in, out, count, 0);
  operation = median(times[0], repetitions);
  const long probe = 20000000;
  double one = timed(in, out, 0, probe);
  long rounds = (long)((double)probe * operation / one);
  for (int i = 0; i < repetitions; ++i) {
    times[0][i] = timed(in, out, count, 0);
    times[1][i] = timed(in, out, 0, rounds);
    times[2][i] = timed(in, out, count, rounds);
  }
  double alone = median(times[0], repetitions), computing = median(times[1], repetitions), both = median(times[2], repetitions);
  double least = alone < computing ? alone : computing;
  if (rank == 0)
    printf("%s on %d ranks, %d MiB: operation %.2f ms, computation %.2f ms, both %.2f ms, overlap %.0f %%\n", collective, size,
           count >> 18, 1e3 * alone, 1e3 * computing, 1e3 * both, 100 * (alone + computing - both) / least);
  const float expected = strcmp(collective, "allreduce") == 0 ? (float)size : 1.0f;
  if (out[0] != expected || out[count / size * size - 1] != expected) return 1;
  MPI_Finalize();
  return 0;
}
