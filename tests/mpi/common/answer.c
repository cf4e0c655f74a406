/* A small MPI program that knows the right answers: every collective Stretto takes over, small and large, checked on every
 * rank. Prints "right" on rank 0; exit code 1 where a number is wrong. argv[1]: how often (1), argv[2]: seconds between.
 * A job that is killed has no such end: a rank that finds a wrong number writes so to the file ANSWER_WRONG, at once. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rank, size;

static int allreduce_is_right(int count) {
  double *in = malloc(sizeof(double) * (size_t)count), *out = malloc(sizeof(double) * (size_t)count);
  int right = 1;
  for (int i = 0; i < count; ++i) in[i] = rank + i % 7;
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) right &= out[i] == size * (size - 1) / 2 + size * (i % 7);
  free(in);
  free(out);
  return right;
}

static int reduce_is_right(int count, int root) {
  int *in = malloc(sizeof(int) * (size_t)count), *out = malloc(sizeof(int) * (size_t)count), right = 1;
  for (int i = 0; i < count; ++i) in[i] = rank ^ i;
  MPI_Reduce(in, out, count, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
  for (int i = 0; rank == root && i < count; ++i) {
    int most = 0;
    for (int r = 0; r < size; ++r) most = (r ^ i) > most ? (r ^ i) : most;
    right &= out[i] == most;
  }
  free(in);
  free(out);
  return right;
}

static int bcast_is_right(int count, int root) {
  int *data = malloc(sizeof(int) * (size_t)count), right = 1;
  for (int i = 0; i < count; ++i) data[i] = rank == root ? 3 * i + root : -1;
  MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) right &= data[i] == 3 * i + root;
  free(data);
  return right;
}

static void tell_wrong(int round) {
  const char* name = getenv("ANSWER_WRONG");
  FILE* file = name ? fopen(name, "a") : NULL;
  if (!file) return;
  fprintf(file, "rank %d of %d: a wrong number in round %d\n", rank, size, round);
  fclose(file);
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  double pause = argc > 2 ? atof(argv[2]) : 0;
  static const int counts[] = {1, 5, 500, 20000, 300000};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int right = 1;
  for (int round = 0; round < rounds; ++round) {
    int count = counts[round % 5];
    MPI_Barrier(MPI_COMM_WORLD);
    int good = allreduce_is_right(count) & reduce_is_right(count, round % size) & bcast_is_right(count, (round + 1) % size);
    if (!good) tell_wrong(round);
    right &= good;
    if (pause > 0) usleep((useconds_t)(pause * 1e6));
  }
  int everywhere = 0;
  PMPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && everywhere) puts("right");
  MPI_Finalize();
  return everywhere ? 0 : 1;
}
