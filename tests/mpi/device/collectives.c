/* Collectives on buffers in host, device and managed memory, in every mixture across ranks, against numbers known beforehand.
 *   collectives right                every collective, shape and mixture; "right" when all numbers are
 *   collectives fail STEP            rank 1's driver fails at STEP (1 copy out, 2 copy in, 3 context) in mid-program; "told"
 *                                    when the ranks that need it learn of it and nobody hangs
 * The driver is loaded long after MPI_Init, as frameworks do. It is the stand-in (standin.c) or, without failures, NVIDIA's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static int rank, size, right = 1;

static void expect(int good, const char* what, int a, int b) {
  if (!good) fprintf(stderr, "rank %d of %d: wrong: %s (%d, %d)\n", rank, size, what, a, b);
  right &= good;
}

static struct memory make(enum place place, const int* values, size_t count) {
  struct memory memory = new_memory(place, count * sizeof(int));
  set_memory(&memory, values);
  return memory;
}

/* How the elements lie: ints in a row, or two of every five. */
struct shape {
  const char* name;
  MPI_Datatype type;
  int ints;      /* per element */
  int extent;    /* in ints */
  int offset[2]; /* of its ints */
  MPI_Op op;
};

static void add_pairs(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lb, extent, true_lb, true_extent;
  MPI_Type_get_extent(*type, &lb, &extent);
  MPI_Type_get_true_extent(*type, &true_lb, &true_extent);
  for (int i = 0; i < *count; ++i) {
    int *a = (int*)((char*)in + i * extent + true_lb), *b = (int*)((char*)inout + i * extent + true_lb);
    int last = (int)(true_extent / (MPI_Aint)sizeof(int)) - 1;
    b[0] += a[0];
    if (last) b[last] += a[last];
  }
}

static int value(int who, int i) {
  return who * 7 + i % 1000;
}

static int sum_of_values(int i) {
  int sum = 0;
  for (int r = 0; r < size; ++r) sum += value(r, i);
  return sum;
}

/* The ints of all elements as a buffer holds them, with -1 in the gaps. */
static int* lay_out(const struct shape* s, int count, int who) {
  int* values = malloc((size_t)(count * s->extent) * sizeof(int));
  for (int i = 0; i < count * s->extent; ++i) values[i] = -1;
  for (int i = 0; i < count * s->ints; ++i)
    values[i / s->ints * s->extent + s->offset[i % s->ints]] = who < 0 ? sum_of_values(i) : value(who, i);
  return values;
}

static void check_values(const struct shape* s, int count, const struct memory* b, const int* expected, const char* what) {
  size_t ints = (size_t)(count * s->extent);
  int* found = malloc(ints * sizeof(int));
  get_memory(b, found);
  expect(memcmp(expected, found, ints * sizeof(int)) == 0, what, count, b->place);
  size_t changed = written_by_others(b);
  expect(changed == 0 || changed == (size_t)(count * s->ints) * sizeof(int), "bytes in gaps were written", count, (int)changed);
  expect(contexts_left() == 0, "a context was left", contexts_left(), 0);
  free(found);
}

static void check(const struct shape* s, int count, const struct memory* b, int who, const char* what) {
  int* expected = lay_out(s, count, who);
  check_values(s, count, b, expected, what);
  free(expected);
}

static enum place place_of(int mixture, int salt) {
  switch (mixture) {
    case 0:
      return DEVICE;
    case 1:
      return rank == 0 ? DEVICE : HOST;
    case 2:
      return rank % 2 ? DEVICE : MANAGED;
    case 3:
      return (rank + salt) % 2 ? DEVICE : HOST;
    default:
      return MANAGED;
  }
}

static void bcast(const struct shape* s, int count, int mixture, int root) {
  int* values = lay_out(s, count, rank);
  struct memory b = make(place_of(mixture, 0), values, (size_t)(count * s->extent));
  expect(MPI_Bcast(b.at, count, s->type, root, MPI_COMM_WORLD) == MPI_SUCCESS, "bcast failed", count, root);
  check(s, count, &b, root, s->name);
  free_memory(&b);
  free(values);
}

static void reduce(const struct shape* s, int count, int mixture, int root, int in_place) {
  int *values = lay_out(s, count, rank), all = root < 0, here = all || rank == root;
  struct memory in = make(place_of(mixture, 0), values, (size_t)(count * s->extent));
  struct memory out = make(place_of(mixture, 1), values, (size_t)(count * s->extent));
  const void* send = in_place && here ? MPI_IN_PLACE : in.at;
  int code = all ? MPI_Allreduce(send, out.at, count, s->type, s->op, MPI_COMM_WORLD)
                 : MPI_Reduce(send, here ? out.at : NULL, count, s->type, s->op, root, MPI_COMM_WORLD);
  expect(code == MPI_SUCCESS, "reduction failed", count, root);
  check(s, count, &in, rank, "the input");
  check(s, count, &out, here ? -1 : rank, s->name);
  free_memory(&in);
  free_memory(&out);
  free(values);
}

/* Blocks of all ranks, one after the other; rank `only` alone, or everybody's own. */
static int* lay_out_all(const struct shape* s, int count, int only) {
  size_t block = (size_t)(count * s->extent);
  int* all = malloc(block * (size_t)size * sizeof(int));
  for (int r = 0; r < size; ++r) {
    int* one = lay_out(s, count, only < 0 ? r : only);
    memcpy(all + (size_t)r * block, one, block * sizeof(int));
    free(one);
  }
  return all;
}

static void allgather(const struct shape* s, int count, int mixture, int in_place) {
  int *values = lay_out(s, count, rank), *before = lay_out_all(s, count, rank), *after = lay_out_all(s, count, -1);
  struct memory in = make(place_of(mixture, 0), values, (size_t)(count * s->extent));
  struct memory out = make(place_of(mixture, 1), before, (size_t)(count * s->extent * size));
  const void* send = in_place ? MPI_IN_PLACE : in.at;
  int code = MPI_Allgather(send, count, s->type, out.at, count, s->type, MPI_COMM_WORLD);
  expect(code == MPI_SUCCESS, "allgather failed", count, mixture);
  check(s, count, &in, rank, "the input");
  check_values(s, count * size, &out, after, "allgather");
  free_memory(&in);
  free_memory(&out);
  free(values);
  free(before);
  free(after);
}

static void reduce_scatter(const struct shape* s, int count, int mixture) {
  int *values = lay_out(s, count * size, rank), *before = lay_out(s, count, rank), *sums = lay_out(s, count * size, -1);
  struct memory in = make(place_of(mixture, 0), values, (size_t)(count * s->extent * size));
  struct memory out = make(place_of(mixture, 1), before, (size_t)(count * s->extent));
  int code = MPI_Reduce_scatter_block(in.at, out.at, count, s->type, s->op, MPI_COMM_WORLD);
  expect(code == MPI_SUCCESS, "reduce_scatter_block failed", count, mixture);
  check(s, count * size, &in, rank, "the input");
  check_values(s, count, &out, sums + (size_t)(rank * count * s->extent), "reduce_scatter_block");
  free_memory(&in);
  free_memory(&out);
  free(values);
  free(before);
  free(sums);
}

static struct shape shapes[3];

static void make_shapes(void) {
  MPI_Datatype gaps, pair;
  int lengths[2] = {1, 1};
  MPI_Aint offsets[2] = {sizeof(int), 3 * sizeof(int)};
  MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
  MPI_Op user;
  MPI_Type_create_struct(2, lengths, offsets, ints, &gaps);
  MPI_Type_create_resized(gaps, 0, 5 * sizeof(int), &pair);
  MPI_Type_commit(&pair);
  MPI_Type_free(&gaps);
  MPI_Op_create(add_pairs, 1, &user);
  shapes[0] = (struct shape){"ints", MPI_INT, 1, 1, {0, 0}, MPI_SUM};
  shapes[1] = (struct shape){"ints, user operation", MPI_INT, 1, 1, {0, 0}, user};
  shapes[2] = (struct shape){"pairs with gaps", pair, 2, 5, {1, 3}, user};
}

static void everything(void) {
  static const int counts[] = {1, 3, 60, 3000, 70000};
  const int most_with_gaps = driver_is_real() ? 300 : 9000; /* each element is a copy of its own */
  for (int k = 0; k < 5; ++k)
    for (int mixture = 0; mixture < 5; ++mixture)
      for (int s = 0; s < 3; ++s) {
        int count = s == 2 && counts[k] > most_with_gaps ? most_with_gaps : counts[k], root = (k + mixture) % size;
        MPI_Barrier(MPI_COMM_WORLD);
        bcast(&shapes[s], count, mixture, root);
        reduce(&shapes[s], count, mixture, root, k % 2);
        reduce(&shapes[s], count, mixture, -1, 0);
        reduce(&shapes[s], count, mixture, -1, 1);
        allgather(&shapes[s], count, mixture, k % 2);
        reduce_scatter(&shapes[s], count / 4 + 1, mixture);
      }
}

/* Rank 1's driver fails. Whoever needs rank 1 gets an error, at once and in every later call; another communicator works. */
static void failure(enum standin_step step) {
  MPI_Comm other;
  int *values = lay_out(&shapes[0], 5000, rank), one = 1, sum = 0;
  struct memory in = make(DEVICE, values, 5000), out = make(DEVICE, values, 5000);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 1) fail_from_now(step);
  int first = MPI_Allreduce(in.at, out.at, 5000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int second = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (step == STANDIN_COPY_IN) { /* the others have their numbers, and rank 1 took part */
    expect((first != MPI_SUCCESS) == (rank == 1), "who is told", first, second);
    expect(second == MPI_SUCCESS && sum == size, "the call after", second, sum);
  } else {
    expect(first != MPI_SUCCESS && second != MPI_SUCCESS, "an error is missing", first, second);
    expect(MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS, "an error is missing in", 0, 0);
  }
  sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
  expect(sum == size, "another communicator", sum, 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int one = 1, sum = 0;
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  load_driver();
  make_shapes();
  if (argc == 2)
    everything();
  else
    failure(atoi(argv[2]));
  int everywhere = 0;
  PMPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && everywhere) puts(argc == 2 ? "right" : "told");
  MPI_Finalize();
  return everywhere ? 0 : 1;
}
