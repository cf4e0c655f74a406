/* Collectives over nodes, Stretto (MPI_X) against the MPI library below it (PMPI_X) in the same process, in turn.
 *
 * nodes_bench [in-order] REPEATS SPREAD ARRIVAL... OPERATION... BYTES...   Rank 0 prints a line per operation, size, arrival and
 * side: operation bytes arrival side median-us most-bytes-out Times are from the last arrival to the last exit, by the clock that
 * all emulated nodes share. most-bytes-out: what left the node that sent most, per call, by its interface's counter. in-order:
 * reductions by a sum of the program's that MPI must take for one that does not commute. ARRIVAL: balanced; random, each rank
 * late by a time drawn from 0 to SPREAD alpha (Alizadeh et al. 2022, 6.1); or node-late, all ranks of one node, another each
 * time, by SPREAD alpha. alpha: a message of that size from the first rank to the last. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_repeats = 200 };
static const char* const arrivals[] = {"balanced", "random", "node-late"};
static int rank, size;
static double spread; /* in alpha */
static float *in, *out;
static MPI_Comm comm;                /* of the calls that are measured: a new one for each operation and size */
static int *counts, *places, *pairs; /* of the v forms: block r has count - r % 4 elements */
static int* byte_places;             /* and types: of alltoallw */
static MPI_Datatype* types;
static MPI_Op op = MPI_SUM; /* of the reductions */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Bytes sent by eth0 of this node. */
static double bytes_out(void) {
  char line[512];
  double sent = 0;
  FILE* file = fopen("/proc/self/net/dev", "r");
  while (file && fgets(line, sizeof line, file)) {
    char* at = strstr(line, "eth0:");
    if (at) sscanf(at + 5, "%*f %*f %*f %*f %*f %*f %*f %*f %lf", &sent);
  }
  if (file) fclose(file);
  return sent;
}

static void add(void* from, void* to, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((float*)to)[i] = ((float*)from)[i] + ((float*)to)[i];
}

/* Pairs must agree: to and from every rank what the lower of both has. */
static void agree_on_pairs(void) {
  const int own = counts[rank];
  for (int r = 0; r < size; ++r) pairs[r] = counts[r] < own ? counts[r] : own;
}

/* count: elements of the vector that is reduced or sent to all, else of the blocks for all ranks together. */
static void call(const char* operation, int accelerated, int count) {
  const int block = count / size;
  if (strcmp(operation, "allgather") == 0) {
    (accelerated ? MPI_Allgather : PMPI_Allgather)(in, block, MPI_FLOAT, out, block, MPI_FLOAT, comm);
  } else if (strcmp(operation, "allgatherv") == 0) {
    (accelerated ? MPI_Allgatherv : PMPI_Allgatherv)(in, counts[rank], MPI_FLOAT, out, counts, places, MPI_FLOAT, comm);
  } else if (strcmp(operation, "gather") == 0) {
    (accelerated ? MPI_Gather : PMPI_Gather)(in, block, MPI_FLOAT, out, block, MPI_FLOAT, 0, comm);
  } else if (strcmp(operation, "gatherv") == 0) {
    (accelerated ? MPI_Gatherv : PMPI_Gatherv)(in, counts[rank], MPI_FLOAT, out, counts, places, MPI_FLOAT, 0, comm);
  } else if (strcmp(operation, "scatter") == 0) {
    (accelerated ? MPI_Scatter : PMPI_Scatter)(in, block, MPI_FLOAT, out, block, MPI_FLOAT, 0, comm);
  } else if (strcmp(operation, "scatterv") == 0) {
    (accelerated ? MPI_Scatterv : PMPI_Scatterv)(in, counts, places, MPI_FLOAT, out, counts[rank], MPI_FLOAT, 0, comm);
  } else if (strcmp(operation, "alltoall") == 0) {
    (accelerated ? MPI_Alltoall : PMPI_Alltoall)(in, block, MPI_FLOAT, out, block, MPI_FLOAT, comm);
  } else if (strcmp(operation, "alltoallv") == 0) {
    agree_on_pairs();
    (accelerated ? MPI_Alltoallv : PMPI_Alltoallv)(in, pairs, places, MPI_FLOAT, out, pairs, places, MPI_FLOAT, comm);
  } else if (strcmp(operation, "alltoallw") == 0) {
    agree_on_pairs();
    for (int r = 0; r < size; ++r) byte_places[r] = places[r] * (int)sizeof(float), types[r] = MPI_FLOAT;
    (accelerated ? MPI_Alltoallw : PMPI_Alltoallw)(in, pairs, byte_places, types, out, pairs, byte_places, types, comm);
  } else if (strcmp(operation, "reduce_scatter") == 0) {
    (accelerated ? MPI_Reduce_scatter : PMPI_Reduce_scatter)(in, out, counts, MPI_FLOAT, op, comm);
  } else if (strcmp(operation, "scan") == 0) {
    (accelerated ? MPI_Scan : PMPI_Scan)(in, out, count, MPI_FLOAT, op, comm);
  } else if (strcmp(operation, "exscan") == 0) {
    (accelerated ? MPI_Exscan : PMPI_Exscan)(in, out, count, MPI_FLOAT, op, comm);
  } else if (strcmp(operation, "reduce_scatter_block") == 0) {
    (accelerated ? MPI_Reduce_scatter_block : PMPI_Reduce_scatter_block)(in, out, block, MPI_FLOAT, op, comm);
  } else if (strcmp(operation, "allreduce") == 0) {
    (accelerated ? MPI_Allreduce : PMPI_Allreduce)(in, out, count, MPI_FLOAT, op, comm);
  } else if (strcmp(operation, "reduce") == 0) {
    (accelerated ? MPI_Reduce : PMPI_Reduce)(in, out, count, MPI_FLOAT, op, 0, comm);
  } else if (strcmp(operation, "bcast") == 0) {
    (accelerated ? MPI_Bcast : PMPI_Bcast)(out, count, MPI_FLOAT, 0, comm);
  } else {
    (accelerated ? MPI_Barrier : PMPI_Barrier)(comm);
  }
}

/* Microseconds of a message between the first rank and the last: half of there and back, the least of some. */
static double message(size_t bytes) {
  double least = 1e12;
  for (int i = 0; i < 4; ++i) {
    const double begin = now();
    for (int back = 0; back < 2; ++back) {
      if (rank == (back ? size - 1 : 0)) PMPI_Send(in, (int)bytes, MPI_BYTE, back ? 0 : size - 1, 0, MPI_COMM_WORLD);
      if (rank == (back ? 0 : size - 1))
        PMPI_Recv(out, (int)bytes, MPI_BYTE, back ? size - 1 : 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const double took = (now() - begin) / 2;
    if (took < least) least = took;
  }
  PMPI_Bcast(&least, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return least;
}

/* 0..1, from two numbers (splitmix64). */
static double drawn(unsigned long a, unsigned long b) {
  unsigned long state = a * 0x9e3779b97f4a7c15ul + b * 0xd1342543de82ef95ul;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ul;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebul;
  return (double)((state ^ (state >> 31)) >> 11) * 0x1p-53;
}

/* By which share of the largest delay this rank is late. The nodes have as many ranks each, and names that end with their
 * numbers. */
static double lateness(const char* arrival, int repeat) {
  if (strcmp(arrival, "random") == 0) return drawn((unsigned long)repeat, (unsigned long)rank);
  if (strcmp(arrival, "node-late") != 0) return 0;
  char name[MPI_MAX_PROCESSOR_NAME];
  int length, highest;
  PMPI_Get_processor_name(name, &length);
  const int node = atoi(name + strcspn(name, "0123456789"));
  PMPI_Allreduce(&node, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return node == repeat % (highest + 1);
}

/* All ranks wait for one time, and each for its delay after it. */
static void arrive(double late_us) {
  double at = now() + 2000;
  PMPI_Bcast(&at, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  at += late_us;
  const struct timespec until = {(time_t)(at * 1e-6), (long)(at * 1e3 - 1e9 * (double)(time_t)(at * 1e-6))};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Driving MPI now and then, which may still have to send. */
static void sleep_us(double us) {
  const struct timespec moment = {0, 200000};
  for (const double until = now() + us; now() < until;) {
    int flag;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    nanosleep(&moment, NULL);
  }
}

/* Microseconds from the last arrival to the last exit. Nodes share cores here: whoever has left sleeps for as long again as it
 * was in the call, so that the others have them until they leave too. */
static double timed(const char* operation, int accelerated, int count, double late_us) {
  double mine[2], all[2];
  PMPI_Barrier(MPI_COMM_WORLD);
  arrive(late_us);
  mine[0] = now();
  call(operation, accelerated, count);
  mine[1] = now();
  sleep_us(mine[1] - mine[0] > 1000 ? mine[1] - mine[0] : 1000);
  PMPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all[1] - all[0];
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* What leaves the busiest node in one call, measured over several without anything in between. */
static double traffic(const char* operation, int accelerated, int count) {
  const int calls = 4;
  double mine, most;
  PMPI_Barrier(MPI_COMM_WORLD);
  struct timespec rest = {0, 20000000};
  nanosleep(&rest, NULL); /* until the barrier's last acknowledgement has gone */
  mine = bytes_out();
  nanosleep(&rest, NULL);
  for (int i = 0; i < calls; ++i) call(operation, accelerated, count);
  nanosleep(&rest, NULL);
  mine = (bytes_out() - mine) / calls;
  PMPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static void measure(const char* operation, size_t bytes, const char* arrival, int repeats) {
  const int apart = strcmp(arrival, "balanced") != 0;
  const double largest = apart ? spread * message(bytes) : 0;
  static double times[2][most_repeats];
  const char* const sides[2] = {"mpi", "stretto"};
  int count = (int)(bytes / sizeof(float));
  for (int r = 0; r < size; ++r) {
    places[r] = r * (count / size);
    counts[r] = count / size > 3 ? count / size - r % 4 : count / size;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 2; ++i) call(operation, i, count);
  for (int i = 0; i < repeats; ++i) {
    const double late_us = apart ? largest * lateness(arrival, i) : 0;
    for (int side = 0; side < 2; ++side) times[side][i] = timed(operation, side, count, late_us);
  }
  for (int side = 0; side < 2; ++side) {
    double out_bytes = apart ? 0 : traffic(operation, side, count);
    qsort(times[side], (size_t)repeats, sizeof(double), by_value);
    if (rank == 0)
      printf("%s %zu %s %s %.1f %.0f\n", operation, bytes, arrival, sides[side], times[side][repeats / 2], out_bytes);
  }
  MPI_Comm_free(&comm);
  if (rank == 0) fflush(stdout);
}

static int is_arrival(const char* word) {
  for (size_t i = 0; i < sizeof arrivals / sizeof arrivals[0]; ++i)
    if (strcmp(word, arrivals[i]) == 0) return 1;
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "in-order") == 0) {
    MPI_Op_create(add, 0, &op);
    --argc, ++argv;
  }
  int repeats = argc > 1 ? atoi(argv[1]) : 10;
  if (repeats > most_repeats) repeats = most_repeats;
  size_t largest = sizeof(float);
  if (argc > 2) spread = atof(argv[2]);
  for (int i = 3; i < argc; ++i)
    if (atoll(argv[i]) > (long long)largest) largest = (size_t)atoll(argv[i]);
  in = calloc(1, largest);
  out = calloc(1, largest);
  counts = calloc((size_t)size, sizeof(int));
  places = calloc((size_t)size, sizeof(int));
  pairs = calloc((size_t)size, sizeof(int));
  byte_places = calloc((size_t)size, sizeof(int));
  types = calloc((size_t)size, sizeof(MPI_Datatype));
  for (int i = 3; i < argc; ++i) {
    if (atoll(argv[i]) > 0 || is_arrival(argv[i])) continue;
    if (strcmp(argv[i], "barrier") == 0) {
      measure(argv[i], 0, arrivals[0], repeats);
      continue;
    }
    for (int k = 3; k < argc; ++k)
      for (int a = 3; atoll(argv[k]) > 0 && a < argc; ++a)
        if (is_arrival(argv[a])) measure(argv[i], (size_t)atoll(argv[k]), argv[a], repeats);
  }
  free(in);
  free(out);
  free(counts);
  free(places);
  free(pairs);
  free(byte_places);
  free(types);
  if (op != MPI_SUM) MPI_Op_free(&op);
  MPI_Finalize();
  return 0;
}
