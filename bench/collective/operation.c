#include "operation.h"

#include <stdlib.h>
#include <string.h>

#include "bare.h"

const char* const operation_names[operations] = {
    "allreduce", "reduce", "bcast",          "barrier", "gather",   "scatter",    "allgather", "alltoall", "reduce_scatter_block",
    "scan",      "exscan", "reduce_scatter", "gatherv", "scatterv", "allgatherv", "alltoallv"};

/* Through pointers, so that the two sides differ in nothing but the function. */
typedef struct {
  int (*allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*reduce)(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
  int (*bcast)(void*, int, MPI_Datatype, int, MPI_Comm);
  int (*barrier)(MPI_Comm);
  int (*gather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
  int (*scatter)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
  int (*allgather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
  int (*alltoall)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
  int (*reduce_scatter_block)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*scan)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*exscan)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*reduce_scatter)(const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*gatherv)(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, int, MPI_Comm);
  int (*scatterv)(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
  int (*allgatherv)(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm);
  int (*alltoallv)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm);
} Side;

static const Side side_table[sides] = {
    {MPI_Allreduce, MPI_Reduce, MPI_Bcast, MPI_Barrier, MPI_Gather, MPI_Scatter, MPI_Allgather, MPI_Alltoall,
     MPI_Reduce_scatter_block, MPI_Scan, MPI_Exscan, MPI_Reduce_scatter, MPI_Gatherv, MPI_Scatterv, MPI_Allgatherv,
     MPI_Alltoallv},
    {PMPI_Allreduce, PMPI_Reduce, PMPI_Bcast, PMPI_Barrier, PMPI_Gather, PMPI_Scatter, PMPI_Allgather, PMPI_Alltoall,
     PMPI_Reduce_scatter_block, PMPI_Scan, PMPI_Exscan, PMPI_Reduce_scatter, PMPI_Gatherv, PMPI_Scatterv, PMPI_Allgatherv,
     PMPI_Alltoallv},
};

/* Element i of rank r in call k is ring[(i + offset(r, k)) % period]. The period is prime, so that no slice of a
 * vector can be mistaken for another. */
enum { period = 251, chunk = 8 * period };
static float ring[chunk + period];

static size_t offset(int rank, unsigned iteration) {
  return ((size_t)rank * 29 + (size_t)iteration * 11) % period;
}

Operation operation_named(const char* name) {
  int found = 0;
  while (found < operations && strcmp(name, operation_names[found]) != 0) ++found;
  return (Operation)found;
}

/* A rank's input consists of a block for each rank; its result of one from each. */
static int gives_each(Operation operation) {
  return operation == op_scatter || operation == op_alltoall || operation == op_reduce_scatter_block ||
         operation == op_reduce_scatter || operation == op_scatterv || operation == op_alltoallv;
}
static int gets_each(Operation operation) {
  return operation == op_gather || operation == op_allgather || operation == op_alltoall || operation == op_gatherv ||
         operation == op_allgatherv || operation == op_alltoallv;
}

/* Elements of the block that `from` gives to `to`. Uneven blocks are half as large again as the mean, or half as large, in turn;
 * what a rank gives and what it gets is then as much as with even ones. */
static size_t block(Operation operation, size_t count, int ranks, int from, int to) {
  if (operation < op_reduce_scatter) return count;
  int place = operation == op_alltoallv ? (from + to) % ranks : to;
  if (operation == op_gatherv || operation == op_allgatherv) place = from;
  if (place == ranks - 1 && ranks % 2 == 1) return count;
  return place % 2 == 1 ? count + count / 2 : count - count / 2;
}

/* Where the block for `to` stands in the input of `from`. */
static size_t given_at(Operation operation, size_t count, int ranks, int from, int to) {
  size_t place = 0;
  for (int r = 0; r < to; ++r) place += block(operation, count, ranks, from, r);
  return place;
}

size_t operation_buffer(Operation operation, size_t bytes, int ranks) {
  if (operation == op_barrier) return 0;
  /* An uneven block alone is no larger than two even ones. */
  return bytes * (size_t)(gives_each(operation) || gets_each(operation) ? (ranks > 2 ? ranks : 2) : 1);
}

size_t operation_moved(Operation operation, size_t bytes, int ranks) {
  if (operation == op_barrier) return 0;
  const int to_one = operation == op_gather || operation == op_scatter || operation == op_gatherv || operation == op_scatterv;
  return bytes * (size_t)((gives_each(operation) || gets_each(operation)) && !to_one ? ranks : 1);
}

void operation_lay_out(Operation operation, Data* data, size_t bytes) {
  const size_t count = bytes / sizeof *data->in;
  int given = 0, got = 0;
  for (int r = 0; r < data->ranks; ++r) {
    data->gives.places[r] = given;
    data->gets.places[r] = got;
    given += data->gives.counts[r] = (int)block(operation, count, data->ranks, data->rank, r);
    got += data->gets.counts[r] = (int)block(operation, count, data->ranks, r, data->rank);
  }
}

static float* touched_buffer(size_t bytes) {
  size_t whole = (bytes + 4095) / 4096 * 4096;
  float* buffer = aligned_alloc(4096, whole ? whole : 4096);
  if (buffer) memset(buffer, 0, whole);
  return buffer;
}

int data_open(Data* data, MPI_Comm comm, size_t most) {
  for (size_t i = 0; i < sizeof ring / sizeof *ring; ++i) ring[i] = (float)(i * 7 % period);
  PMPI_Comm_rank(comm, &data->rank);
  PMPI_Comm_size(comm, &data->ranks);
  data->comm = comm;
  data->bare = NULL;
  data->in_place = 0;
  data->in = touched_buffer(most);
  data->out = touched_buffer(most);
  int* numbers = calloc(4 * (size_t)data->ranks, sizeof *numbers);
  data->gives = (Blocks){numbers, numbers + data->ranks};
  data->gets = (Blocks){numbers + 2 * data->ranks, numbers + 3 * data->ranks};
  return data->in && data->out && numbers ? 0 : -1;
}

void data_close(Data* data) {
  free(data->in);
  free(data->out);
  free(data->gives.counts);
}

/* Where this rank's input of the operation stands; null if it has none. */
static float* input(Operation operation, const Data* data, int root) {
  if (operation == op_barrier) return NULL;
  if (operation == op_bcast) return data->rank == root ? data->out : NULL;
  if (operation > op_barrier || !data->in_place || (operation == op_reduce && data->rank != root)) return data->in;
  return data->out;
}

void operation_fill(Operation operation, Data* data, size_t bytes, int root, unsigned iteration) {
  float* buffer = input(operation, data, root);
  if (!buffer) return;
  const float* pattern = ring + offset(data->rank, iteration);
  size_t count = block(operation, bytes / sizeof *buffer, data->ranks, data->rank, data->rank), i = 0;
  if (gives_each(operation)) count = bytes / sizeof *buffer * (size_t)data->ranks;
  for (; i + chunk <= count; i += chunk) memcpy(buffer + i, pattern, chunk * sizeof *buffer);
  memcpy(buffer + i, pattern, (count - i) * sizeof *buffer);
}

void operation_poison(Operation operation, Data* data, size_t bytes) {
  for (size_t i = 0; i < operation_buffer(operation, bytes, data->ranks) / sizeof *data->out; ++i) data->out[i] = -1;
}

void operation_call(Operation operation, int side, const Data* data, size_t bytes, int root) {
  if (data->bare) {
    bare_call(data->bare, operation, data, bytes, root);
    return;
  }
  const Side* use = &side_table[side];
  const int count = (int)(bytes / sizeof *data->out);
  const float* in = input(operation, data, root);
  const void* send = in == data->out ? MPI_IN_PLACE : in;
  const Blocks *gives = &data->gives, *gets = &data->gets;
  const int given = gives->counts[data->rank], got = gets->counts[data->rank]; /* where it is one block alone */
  switch (operation) {
    case op_allreduce:
      use->allreduce(send, data->out, count, MPI_FLOAT, MPI_SUM, data->comm);
      break;
    case op_reduce:
      use->reduce(send, data->out, count, MPI_FLOAT, MPI_SUM, root, data->comm);
      break;
    case op_bcast:
      use->bcast(data->out, count, MPI_FLOAT, root, data->comm);
      break;
    case op_gather:
      use->gather(send, count, MPI_FLOAT, data->out, count, MPI_FLOAT, root, data->comm);
      break;
    case op_scatter:
      use->scatter(send, count, MPI_FLOAT, data->out, count, MPI_FLOAT, root, data->comm);
      break;
    case op_allgather:
      use->allgather(send, count, MPI_FLOAT, data->out, count, MPI_FLOAT, data->comm);
      break;
    case op_alltoall:
      use->alltoall(send, count, MPI_FLOAT, data->out, count, MPI_FLOAT, data->comm);
      break;
    case op_reduce_scatter_block:
      use->reduce_scatter_block(send, data->out, count, MPI_FLOAT, MPI_SUM, data->comm);
      break;
    case op_scan:
      use->scan(send, data->out, count, MPI_FLOAT, MPI_SUM, data->comm);
      break;
    case op_exscan:
      use->exscan(send, data->out, count, MPI_FLOAT, MPI_SUM, data->comm);
      break;
    case op_reduce_scatter:
      use->reduce_scatter(send, data->out, gives->counts, MPI_FLOAT, MPI_SUM, data->comm);
      break;
    case op_gatherv:
      use->gatherv(send, given, MPI_FLOAT, data->out, gets->counts, gets->places, MPI_FLOAT, root, data->comm);
      break;
    case op_scatterv:
      use->scatterv(send, gives->counts, gives->places, MPI_FLOAT, data->out, got, MPI_FLOAT, root, data->comm);
      break;
    case op_allgatherv:
      use->allgatherv(send, given, MPI_FLOAT, data->out, gets->counts, gets->places, MPI_FLOAT, data->comm);
      break;
    case op_alltoallv:
      use->alltoallv(send, gives->counts, gives->places, MPI_FLOAT, data->out, gets->counts, gets->places, MPI_FLOAT, data->comm);
      break;
    default:
      use->barrier(data->comm);
      break;
  }
}

/* What a call means by one element of its result. */
typedef struct {
  Operation operation;
  const Data* data;
  size_t count; /* elements of a block */
  int root;
  unsigned iteration;
} Result;

static float sum_of(const Result* r, size_t i, int from, int to) {
  float sum = 0;
  for (int rank = from; rank < to; ++rank) sum += ring[(i + offset(rank, r->iteration)) % period];
  return sum;
}

/* Element i of the block from rank `from` (of the only one). */
static float expected(const Result* r, int from, size_t i) {
  const size_t mine = i + given_at(r->operation, r->count, r->data->ranks, from, r->data->rank);
  switch (r->operation) {
    case op_bcast:
      return sum_of(r, i, r->root, r->root + 1);
    case op_gather:
    case op_gatherv:
    case op_allgather:
    case op_allgatherv:
      return sum_of(r, i, from, from + 1);
    case op_scatter:
    case op_scatterv: /* how a root lays out its blocks does not depend on who it is */
      return sum_of(r, mine, r->root, r->root + 1);
    case op_alltoall:
    case op_alltoallv:
      return sum_of(r, mine, from, from + 1);
    case op_reduce_scatter_block:
    case op_reduce_scatter:
      return sum_of(r, mine, 0, r->data->ranks);
    case op_scan:
      return sum_of(r, i, 0, r->data->rank + 1);
    case op_exscan:
      return sum_of(r, i, 0, r->data->rank);
    default:
      return sum_of(r, i, 0, r->data->ranks);
  }
}

static int has_result(Operation operation, const Data* data, int root) {
  if (operation == op_exscan) return data->rank > 0;
  if (operation == op_reduce || operation == op_gather || operation == op_gatherv) return data->rank == root;
  return operation != op_barrier;
}

static int blocks_of(const Result* r) {
  return gets_each(r->operation) ? r->data->ranks : 1;
}

/* Block `b` of the result, and how many elements it has. */
static const float* result_block(const Result* r, int b, size_t* count) {
  const Blocks* gets = &r->data->gets;
  const int each = gets_each(r->operation);
  *count = (size_t)gets->counts[each ? b : r->data->rank];
  return r->data->out + (each ? gets->places[b] : 0);
}

size_t operation_check_all(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration) {
  if (!has_result(operation, data, root)) return 0;
  const Result r = {operation, data, bytes / sizeof *data->out, root, iteration};
  size_t wrong = 0;
  for (int b = 0; b < blocks_of(&r); ++b) {
    float repeating[period]; /* the result has the inputs' period */
    size_t count;
    const float* found = result_block(&r, b, &count);
    for (size_t i = 0; i < period; ++i) repeating[i] = expected(&r, b, i);
    for (size_t i = 0; i < count; ++i) wrong += found[i] != repeating[i % period];
  }
  return wrong;
}

size_t operation_check_some(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration) {
  const Result r = {operation, data, bytes / sizeof *data->out, root, iteration};
  if (!has_result(operation, data, root) || r.count == 0) return 0;
  const int last = blocks_of(&r) - 1;
  size_t count, wrong = 0;
  const float* found = result_block(&r, last, &count);
  const size_t places[3] = {0, count / 2, count - 1};
  for (int p = 0; p < 3; ++p) wrong += found[places[p]] != expected(&r, last, places[p]);
  return wrong;
}
