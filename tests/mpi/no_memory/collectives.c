/* A rank that malloc refuses everything large, in collectives whose buffers have gaps and must be packed.
 *   collectives right    the job's shared memory has room instead: "right" when all numbers are
 *   collectives told     it has none: "told" when every rank that needs that rank learns of it, and nobody hangs */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void* __libc_malloc(size_t);
void* __libc_memalign(size_t, size_t);

static volatile size_t most = (size_t)-1;

static int refused(size_t bytes) {
  if (bytes <= most) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) {
  return refused(bytes) ? NULL : __libc_malloc(bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return refused(bytes) ? NULL : __libc_memalign(alignment, bytes);
}

enum { count = 400000 }; /* elements of two ints, with gaps */
static int rank, size, right = 1;
static int in[count * 5], out[count * 5];
static MPI_Datatype pair;
static MPI_Op composition;

static void expect(int good, const char* what, int a, int b) {
  if (!good) fprintf(stderr, "rank %d of %d: wrong: %s (%d, %d)\n", rank, size, what, a, b);
  right &= good;
}

/* Pairs (a, b) stand for x -> a x + b; associative, not commutative. */
static void compose(void* first, void* second, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) {
    unsigned *l = (unsigned*)first + 5 * i, *r = (unsigned*)second + 5 * i;
    r[3] = l[1] * r[3] + l[3];
    r[1] = l[1] * r[1];
  }
}

static void fill(int* values) {
  for (int i = 0; i < count * 5; ++i) values[i] = i % 5 == 1 || i % 5 == 3 ? rank + i % 11 + 1 : -1;
}

static int expected(int i, int which) {
  unsigned a = 1, b = 0;
  for (int r = 0; r < size; ++r) {
    unsigned ra = (unsigned)(r + (5 * i + 1) % 11 + 1), rb = (unsigned)(r + (5 * i + 3) % 11 + 1);
    b = a * rb + b;
    a = a * ra;
  }
  return (int)(which == 1 ? a : b);
}

static void check_composition(const int* values) {
  for (int i = 0; i < count; ++i) {
    const int* v = values + 5 * i;
    if (v[1] == expected(i, 1) && v[3] == expected(i, 3) && v[0] == -1 && v[2] == -1 && v[4] == -1) continue;
    expect(0, "composition at", i, v[1]);
    return;
  }
}

static void check_bcast(const int* values, int root) {
  for (int i = 0; i < count * 5; ++i) {
    if (values[i] == (i % 5 == 1 || i % 5 == 3 ? root + i % 11 + 1 : -1)) continue;
    expect(0, "broadcast at", i, values[i]);
    return;
  }
}

static void numbers_are_right(void) {
  for (int root = 0; root < size; ++root) {
    fill(in);
    expect(MPI_Bcast(in, count, pair, root, MPI_COMM_WORLD) == MPI_SUCCESS, "bcast failed, root", root, 0);
    check_bcast(in, root);
    fill(in);
    fill(out);
    expect(MPI_Reduce(in, out, count, pair, composition, root, MPI_COMM_WORLD) == MPI_SUCCESS, "reduce failed, root", root, 0);
    if (rank == root) check_composition(out);
  }
  fill(out);
  expect(MPI_Allreduce(MPI_IN_PLACE, out, count, pair, composition, MPI_COMM_WORLD) == MPI_SUCCESS, "allreduce failed", 0, 0);
  check_composition(out);
}

/* Every rank gets the elements of all; and the composition of its own part. */
static void blocks_are_right(void) {
  int part = count / size;
  fill(in);
  fill(out);
  int code = MPI_Allgather(in, part, pair, out, part, pair, MPI_COMM_WORLD);
  expect(code == MPI_SUCCESS, "allgather failed", code, 0);
  for (int i = 0; i < part * size * 5; ++i) {
    int from = i / (part * 5), at = i % (part * 5);
    if (out[i] == (i % 5 == 1 || i % 5 == 3 ? from + at % 11 + 1 : -1)) continue;
    expect(0, "allgather at", i, out[i]);
    break;
  }
  for (int i = 0; i < count * 5; ++i) out[i] = -1;
  code = MPI_Reduce_scatter_block(in, out, part, pair, composition, MPI_COMM_WORLD);
  expect(code == MPI_SUCCESS, "reduce_scatter_block failed", code, 0);
  for (int i = 0; i < part; ++i) {
    const int *v = out + 5 * i, e = i + rank * part;
    if (v[1] == expected(e, 1) && v[3] == expected(e, 3) && v[0] == -1 && v[2] == -1 && v[4] == -1) continue;
    expect(0, "reduce_scatter_block at", i, v[1]);
    break;
  }
}

static void all_are_told(MPI_Comm other, int by_allgather) {
  int one = 1, sum = 0, class = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  fill(in);
  int code = by_allgather ? MPI_Allgather(in, count / size, pair, out, count / size, pair, MPI_COMM_WORLD)
                          : MPI_Allreduce(in, out, count, pair, composition, MPI_COMM_WORLD);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  expect(code != MPI_SUCCESS && (class == MPI_ERR_NO_MEM) == (rank == 1), "the call itself", code, class);
  expect(MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS, "a bcast after it", 0, 0);
  expect(MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS, "a barrier after it", 0, 0);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
  expect(sum == size, "another communicator", sum, 0);
}

static void make_types(void) {
  MPI_Datatype gaps;
  int places[2] = {1, 3};
  MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &gaps);
  MPI_Type_create_resized(gaps, 0, 5 * sizeof(int), &pair);
  MPI_Type_commit(&pair);
  MPI_Type_free(&gaps);
  MPI_Op_create(compose, 0, &composition);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  make_types();
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);  // while there is memory: MPI libraries do not stand its lack there
  int large = 0, sum = 0, everywhere = 0;
  MPI_Allreduce(&large, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 1) most = 20000;
  if (argc > 1 && strcmp(argv[1], "told") == 0) {
    all_are_told(other, argc > 2);
  } else {
    numbers_are_right();
    blocks_are_right();
  }
  most = (size_t)-1;
  PMPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && everywhere) puts(argv[1]);
  MPI_Finalize();
  return everywhere ? 0 : 1;
}
