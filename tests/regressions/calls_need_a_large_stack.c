// Gatherv, Alltoallv, Alltoallw and what moves long vectors had tables for 512 ranks on the stack of the thread that called them:
// up to 250 KiB, which threads of small stacks do not have. Here each collective runs in a thread whose stack has been painted,
// and may go 24 KiB deeper than MPI's own collectives do.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { stack_bytes = 1 << 20, paint = 0x5a, allowed = 24 << 10, most = 40000, most_ranks = 16 };
static char* stack;
static int rank, ranks, n;  // n: ints of a block
static int *in, *out, *expected;
static int counts[most_ranks], places[most_ranks], gives[most_ranks], gets[most_ranks], bytes_in[most_ranks],
    bytes_out[most_ranks];
static MPI_Datatype ints[most_ranks], spread[most_ranks], with_gaps;
static MPI_Request request;

static void* vector(int r) {
  return rank == r ? out : NULL;
}

// Every collective, by Stretto and, with P in front, by MPI alone.
#define COLLECTIVES(X)                                                                      \
  X(Barrier, (MPI_COMM_WORLD))                                                              \
  X(Bcast, (out, n, MPI_INT, 1, MPI_COMM_WORLD))                                            \
  X(Reduce, (in, vector(0), ranks * n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD))                \
  X(Allreduce, (in, out, ranks * n, MPI_INT, MPI_SUM, MPI_COMM_WORLD))                      \
  X(Gather, (in, n, MPI_INT, out, n, MPI_INT, 1, MPI_COMM_WORLD))                           \
  X(Scatter, (in, n, MPI_INT, out, n, MPI_INT, 1, MPI_COMM_WORLD))                          \
  X(Allgather, (in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD))                           \
  X(Alltoall, (in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD))                            \
  X(Gatherv, (in, counts[rank], MPI_INT, out, counts, places, MPI_INT, 0, MPI_COMM_WORLD))  \
  X(Scatterv, (in, counts, places, MPI_INT, out, counts[rank], MPI_INT, 0, MPI_COMM_WORLD)) \
  X(Allgatherv, (in, counts[rank], MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD))  \
  X(Alltoallv, (in, gives, places, MPI_INT, out, gets, places, MPI_INT, MPI_COMM_WORLD))    \
  X(Alltoallw, (in, gives, bytes_in, ints, out, gets, bytes_out, spread, MPI_COMM_WORLD))   \
  X(Reduce_scatter, (in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD))                    \
  X(Reduce_scatter_block, (in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD))                   \
  X(Scan, (in, out, ranks * n, MPI_INT, MPI_SUM, MPI_COMM_WORLD))                           \
  X(Exscan, (in, out, ranks * n, MPI_INT, MPI_SUM, MPI_COMM_WORLD))
#define STARTED(X)                                                                                  \
  X(Iallreduce, (in, out, ranks * n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request))                   \
  X(Ialltoallv, (in, gives, places, MPI_INT, out, gets, places, MPI_INT, MPI_COMM_WORLD, &request)) \
  X(Ialltoallw, (in, gives, bytes_in, ints, out, gets, bytes_out, spread, MPI_COMM_WORLD, &request))

#define BLOCKING(name, arguments) \
  static void own_##name(void) {  \
    MPI_##name arguments;         \
  }                               \
  static void mpis_##name(void) { \
    PMPI_##name arguments;        \
  }
#define AND_WAIT(name, arguments)           \
  static void own_##name(void) {            \
    MPI_##name arguments;                   \
    MPI_Wait(&request, MPI_STATUS_IGNORE);  \
  }                                         \
  static void mpis_##name(void) {           \
    PMPI_##name arguments;                  \
    PMPI_Wait(&request, MPI_STATUS_IGNORE); \
  }
COLLECTIVES(BLOCKING)
STARTED(AND_WAIT)

#define ROW(name, arguments) {#name, own_##name, mpis_##name},
static const struct {
  const char* name;
  void (*own)(void);
  void (*mpis)(void);
} rows[] = {COLLECTIVES(ROW) STARTED(ROW)};
enum { row_count = sizeof rows / sizeof rows[0] };

static void describe(void) {
  for (int r = 0; r < ranks; ++r) {
    counts[r] = n - r % 2;
    places[r] = r * n;
    gives[r] = gets[r] = n - (rank + r) % 2;
    bytes_in[r] = places[r] * (int)sizeof(int);
    bytes_out[r] = 2 * bytes_in[r];
    ints[r] = MPI_INT;
    spread[r] = with_gaps;
  }
}

static size_t out_bytes(void) {
  return 2 * (size_t)ranks * (size_t)n * sizeof(int);
}

// How deep `call` goes: below this frame the stack is painted first.
__attribute__((noinline)) static long depth_of(void (*call)(void)) {
  char* const here = __builtin_frame_address(0);
  for (int i = 0; i < 2 * ranks * n; ++i) out[i] = i % 2 ? -1 : rank + i;
  for (volatile char* p = stack; p < here - 512; ++p) *p = paint;
  call();
  const char* deepest = stack;
  while (*deepest == paint) ++deepest;
  return here - deepest;
}

static int check(int row, long mpis_depth) {
  int wrong = 0;
  depth_of(rows[row].mpis);
  memcpy(expected, out, out_bytes());
  for (int time = 0; time < 3; ++time) {
    const long depth = depth_of(rows[row].own);
    const int differs = memcmp(out, expected, out_bytes()) != 0, deep = depth > mpis_depth + allowed;
    if (differs) printf("rank %d: wrong: %s of %d has another result\n", rank, rows[row].name, n);
    if (deep) printf("rank %d: wrong: %s of %d: %ld bytes of stack, MPI %ld\n", rank, rows[row].name, n, depth, mpis_depth);
    wrong += differs || deep;
  }
  return wrong;
}

static void* run(void* unused) {
  static const int sizes[] = {2, 700, most};
  int wrong = 0, provided;
  long mpis_depth = 0;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &with_gaps);
  MPI_Type_commit(&with_gaps);
  in = malloc(2 * sizeof(int) * most * (size_t)ranks);
  out = malloc(2 * sizeof(int) * most * (size_t)ranks);
  expected = malloc(2 * sizeof(int) * most * (size_t)ranks);
  for (int i = 0; i < 2 * ranks * most; ++i) in[i] = 1000 * rank + i;
  for (int size = 0; size < 3; ++size) {
    n = sizes[size];
    describe();
    for (int row = 0; row < row_count; ++row) {
      const long depth = depth_of(rows[row].mpis);
      if (depth > mpis_depth) mpis_depth = depth;
    }
  }
  for (int size = 0; size < 3; ++size) {
    n = sizes[size];
    describe();
    for (int row = 0; row < row_count; ++row) wrong += check(row, mpis_depth);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && wrong == 0) printf("right\n");
  MPI_Type_free(&with_gaps);
  MPI_Finalize();
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  stack = aligned_alloc(4096, stack_bytes);
  pthread_attr_init(&attributes);
  return stack == NULL || pthread_attr_setstack(&attributes, stack, stack_bytes) != 0 ||
         pthread_create(&thread, &attributes, run, NULL) != 0 || pthread_join(thread, NULL) != 0;
}
