/* Collectives on buffers in host, device and managed memory, in every mixture across ranks, against numbers known beforehand.
 *   collectives right [many]         every collective, shape and mixture; "right" when all numbers are; many: the driver may take
 *                                    many calls for elements with gaps
 *   collectives fail STEP            rank 1's driver fails at STEP (1 copy out, 2 copy in, 3 context, 4 wait, 5 copies in after
 *                                    the first) in mid-program; "told" when the ranks that need it learn of it and nobody hangs
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

/* How the elements lie. */
enum { most_ints = 12 };
struct shape {
  const char* name;
  MPI_Datatype type;
  int ints;              /* per element */
  int extent;            /* in ints */
  int offset[most_ints]; /* of its ints */
  MPI_Op op;
};

static const struct shape* shape_added; /* of the elements that user operations get now */
static const struct memory* gaps_taken; /* whose gaps the user operation writes to */
static int additions;

/* Another kernel may write to gaps meanwhile: here to the one between the ints of the first pair. */
static void write_to_gap(void) {
  if (gaps_taken && additions++ == 0) set_int(gaps_taken, 2, 77);
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  const struct shape* s = shape_added;
  int *a = in, *b = inout;
  (void)type;
  write_to_gap();
  for (int i = 0; i < *count; ++i)
    for (int k = 0; k < s->ints; ++k) b[i * s->extent + s->offset[k]] += a[i * s->extent + s->offset[k]];
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
  shape_added = s;
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
  shape_added = s;
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

enum { one_int, one_int_added, pairs, columns, blocks, irregular, shape_count };
static struct shape shapes[shape_count];

/* Room for more than comes: what lies behind that stays as it is. */
static void check_room(const struct shape* s, int count, const struct memory* b, int came, int first, int last) {
  int* expected = lay_out_all(s, count, rank);
  const int block = count * s->extent, whole = (came + s->ints - 1) / s->ints * s->ints;
  for (int from = first; from <= last; ++from)
    for (int i = 0; i < came; ++i)
      expected[(from - first) * block + i / s->ints * s->extent + s->offset[i % s->ints]] = value(from, i);
  int* found = malloc((size_t)(size * block) * sizeof(int));
  get_memory(b, found);
  expect(memcmp(expected, found, (size_t)(size * block) * sizeof(int)) == 0, "more room than comes", count, b->place);
  expect(written_by_others(b) <= (size_t)((last - first + 1) * whole) * sizeof(int), "bytes behind what came", count, came);
  free(expected);
  free(found);
}

static void more_room(const struct shape* s, int count, int mixture, int root) {
  const int came = count * s->ints - count * s->ints / 3 - 1;
  int *values = lay_out(&shapes[one_int], count * s->ints, rank), *before = lay_out_all(s, count, rank);
  int *counts = malloc((size_t)size * sizeof(int)), *places = malloc((size_t)size * sizeof(int));
  for (int r = 0; r < size; ++r) counts[r] = count, places[r] = r * count;
  struct memory in = make(place_of(mixture, 0), values, (size_t)(count * s->ints));
  struct memory out = make(place_of(mixture, 1), before, (size_t)(count * s->extent * size));
  MPI_Gatherv(in.at, came, MPI_INT, out.at, counts, places, s->type, root, MPI_COMM_WORLD);
  if (rank == root) check_room(s, count, &out, came, 0, size - 1);
  set_memory(&out, before);
  if (rank == root)
    MPI_Bcast(in.at, came, MPI_INT, root, MPI_COMM_WORLD);
  else
    MPI_Bcast(out.at, count, s->type, root, MPI_COMM_WORLD);
  if (rank != root) check_room(s, count, &out, came, root, root);
  free_memory(&in);
  free_memory(&out);
  free(values);
  free(before);
  free(counts);
  free(places);
}

/* `list` has the ints of an element; the type takes its own extent in their place. */
static void make_shape(int which, const char* name, MPI_Datatype type, int extent, const int* list, int ints, MPI_Op op) {
  struct shape s = {.name = name, .ints = ints, .extent = extent, .op = op};
  MPI_Type_create_resized(type, 0, extent * (MPI_Aint)sizeof(int), &s.type);
  MPI_Type_commit(&s.type);
  MPI_Type_free(&type);
  memcpy(s.offset, list, (size_t)ints * sizeof(int));
  shapes[which] = s;
}

static void make_shapes(void) {
  static const int two[] = {1, 3}, column[] = {0, 4, 8, 12, 16, 20, 24},
                   block[] = {39, 40, 45, 46, 51, 52, 69, 70, 75, 76, 81, 82};
  static const int some[] = {0, 2, 3, 4, 7, 8, 13, 15, 16, 17, 18, 19};
  int sizes[3] = {4, 5, 6}, parts[3] = {2, 3, 2}, starts[3] = {1, 1, 3}; /* a box of 4 x 5 x 6, a block in its midst */
  int lengths[] = {1, 3, 2, 1, 5}, places[] = {0, 2, 7, 13, 15};
  MPI_Datatype type;
  MPI_Op user;
  MPI_Op_create(add, 1, &user);
  shapes[one_int] = (struct shape){"ints", MPI_INT, 1, 1, {0}, MPI_SUM};
  shapes[one_int_added] = (struct shape){"ints, user operation", MPI_INT, 1, 1, {0}, user};
  MPI_Type_create_indexed_block(2, 1, two, MPI_INT, &type);
  make_shape(pairs, "pairs with gaps", type, 5, two, 2, user);
  MPI_Type_vector(7, 1, 4, MPI_INT, &type);
  make_shape(columns, "columns", type, 28, column, 7, user);
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
  make_shape(blocks, "blocks of boxes", type, 120, block, 12, user);
  MPI_Type_indexed(5, lengths, places, MPI_INT, &type);
  make_shape(irregular, "irregular elements", type, 23, some, 12, user);
}

static void everything(void) {
  static const int counts[] = {1, 3, 60, 3000, 70000};
  const int most_with_gaps = 45000; /* ints with their gaps */
  for (int k = 0; k < 5; ++k)
    for (int mixture = 0; mixture < 5; ++mixture)
      for (int s = 0; s < shape_count; ++s) {
        int most = s < pairs ? counts[k] : most_with_gaps / shapes[s].extent, root = (k + mixture) % size;
        int count = counts[k] < most ? counts[k] : most;
        MPI_Barrier(MPI_COMM_WORLD);
        bcast(&shapes[s], count, mixture, root);
        reduce(&shapes[s], count, mixture, root, k % 2);
        reduce(&shapes[s], count, mixture, -1, 0);
        reduce(&shapes[s], count, mixture, -1, 1);
        allgather(&shapes[s], count, mixture, k % 2);
        reduce_scatter(&shapes[s], count / 4 + 1, mixture);
        if (count * shapes[s].ints < 200 && count * shapes[s].ints > 1) more_room(&shapes[s], count, mixture, root);
      }
}

/* What is written to a gap during a call stays. */
static void gaps_in_use(void) {
  const struct shape* s = &shapes[pairs];
  int count = 2000, *values = lay_out(s, count, rank), *sums = lay_out(s, count, -1);
  struct memory in = make(DEVICE, values, (size_t)(count * s->extent)), out = make(DEVICE, values, (size_t)(count * s->extent));
  shape_added = s;
  gaps_taken = &out;
  expect(MPI_Allreduce(in.at, out.at, count, s->type, s->op, MPI_COMM_WORLD) == MPI_SUCCESS, "allreduce failed", count, 0);
  gaps_taken = NULL;
  if (additions) sums[2] = 77;
  check_values(s, count, &out, sums, "gaps in use");
  int anywhere = 0;
  PMPI_Allreduce(&additions, &anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(anywhere > 0, "no gap was written to", 0, 0);
  free_memory(&in);
  free_memory(&out);
  free(values);
  free(sums);
}

/* The column of a matrix does not take a call of the driver for each of its elements. */
static void column_of_matrix(int few) {
  struct shape s = {.name = "a column", .ints = 1, .extent = 16, .offset = {0}};
  const int rows = 4096;
  int *values = lay_out(&s, rows, rank), *expected = lay_out(&s, rows, 0);
  struct memory b = make(DEVICE, values, (size_t)(rows * s.extent));
  MPI_Type_vector(rows, 1, s.extent, MPI_INT, &s.type);
  MPI_Type_commit(&s.type);
  int before = calls_of_driver();
  expect(MPI_Bcast(b.at, 1, s.type, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "bcast failed", rows, 0);
  int calls = calls_of_driver() - before;
  expect(!few || calls <= 20, "calls of the driver for a column", calls, rows);
  check_values(&s, rows, &b, expected, s.name);
  MPI_Type_free(&s.type);
  free_memory(&b);
  free(values);
  free(expected);
}

/* Rank 1's driver fails. Whoever needs rank 1 gets an error, at once and in every later call; another communicator works. */
static void failure(enum standin_step step) {
  MPI_Comm other;
  const struct shape* s = &shapes[step == STANDIN_LATER_COPY_IN ? irregular : one_int];
  int count = 5000, *values = lay_out(s, count, rank), one = 1, sum = 0;
  struct memory in = make(DEVICE, values, (size_t)(count * s->extent)), out = make(DEVICE, values, (size_t)(count * s->extent));
  shape_added = s;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 1) fail_from_now(step);
  int first = MPI_Allreduce(in.at, out.at, count, s->type, s->op, MPI_COMM_WORLD);
  int second = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (step == STANDIN_COPY_IN || step == STANDIN_WAIT ||
      step == STANDIN_LATER_COPY_IN) { /* the others have their numbers, and rank 1 took part */
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
  int checking = strcmp(argv[1], "right") == 0;
  if (checking) {
    everything();
    gaps_in_use();
    column_of_matrix(argc == 2);
  } else {
    failure(atoi(argv[2]));
  }
  int everywhere = 0;
  PMPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && everywhere) puts(checking ? "right" : "told");
  MPI_Finalize();
  return everywhere ? 0 : 1;
}
