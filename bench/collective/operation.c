#include "operation.h"

#include <stdlib.h>
#include <string.h>

const char* const operation_names[operations] = {
    "allreduce", "reduce", "bcast", "barrier", "gather", "scatter", "allgather", "alltoall", "reduce_scatter_block",
    "scan",      "exscan"};

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
} Side;

static const Side side_table[sides] = {
    {MPI_Allreduce, MPI_Reduce, MPI_Bcast, MPI_Barrier, MPI_Gather, MPI_Scatter, MPI_Allgather, MPI_Alltoall,
     MPI_Reduce_scatter_block, MPI_Scan, MPI_Exscan},
    {PMPI_Allreduce, PMPI_Reduce, PMPI_Bcast, PMPI_Barrier, PMPI_Gather, PMPI_Scatter, PMPI_Allgather, PMPI_Alltoall,
     PMPI_Reduce_scatter_block, PMPI_Scan, PMPI_Exscan},
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

int operation_is_rooted(Operation operation) {
  return operation == op_reduce || operation == op_bcast || operation == op_gather || operation == op_scatter;
}

/* A rank's input consists of a block for each rank; its result of one from each. */
static int gives_each(Operation operation) {
  return operation == op_scatter || operation == op_alltoall || operation == op_reduce_scatter_block;
}
static int gets_each(Operation operation) {
  return operation == op_gather || operation == op_allgather || operation == op_alltoall;
}

static float* touched_buffer(size_t bytes) {
  size_t whole = (bytes + 4095) / 4096 * 4096;
  float* buffer = aligned_alloc(4096, whole ? whole : 4096);
  if (buffer) memset(buffer, 0, whole);
  return buffer;
}

int data_open(Data* data, MPI_Comm comm, size_t bytes) {
  for (size_t i = 0; i < sizeof ring / sizeof *ring; ++i) ring[i] = (float)(i * 7 % period);
  PMPI_Comm_rank(comm, &data->rank);
  PMPI_Comm_size(comm, &data->ranks);
  data->comm = comm;
  data->in_place = 0;
  data->in = touched_buffer(bytes * (size_t)data->ranks);
  data->out = touched_buffer(bytes * (size_t)data->ranks);
  return data->in && data->out ? 0 : -1;
}

void data_close(Data* data) {
  free(data->in);
  free(data->out);
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
  size_t count = bytes / sizeof *buffer * (gives_each(operation) ? (size_t)data->ranks : 1), i = 0;
  for (; i + chunk <= count; i += chunk) memcpy(buffer + i, pattern, chunk * sizeof *buffer);
  memcpy(buffer + i, pattern, (count - i) * sizeof *buffer);
}

void operation_poison(Data* data, size_t bytes) {
  for (size_t i = 0; i < bytes * (size_t)data->ranks / sizeof *data->out; ++i) data->out[i] = -1;
}

void operation_call(Operation operation, int side, const Data* data, size_t bytes, int root) {
  const Side* use = &side_table[side];
  const int count = (int)(bytes / sizeof *data->out);
  const float* in = input(operation, data, root);
  const void* send = in == data->out ? MPI_IN_PLACE : in;
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

/* Element i of the block from rank `block` (of the only one). */
static float expected(const Result* r, int block, size_t i) {
  const size_t mine = i + (size_t)r->data->rank * r->count;
  switch (r->operation) {
    case op_bcast:
      return sum_of(r, i, r->root, r->root + 1);
    case op_gather:
    case op_allgather:
      return sum_of(r, i, block, block + 1);
    case op_scatter:
      return sum_of(r, mine, r->root, r->root + 1);
    case op_alltoall:
      return sum_of(r, mine, block, block + 1);
    case op_reduce_scatter_block:
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
  return operation != op_barrier && ((operation != op_reduce && operation != op_gather) || data->rank == root);
}

static int blocks_of(const Result* r) {
  return gets_each(r->operation) ? r->data->ranks : 1;
}

size_t operation_check_all(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration) {
  if (!has_result(operation, data, root)) return 0;
  const Result r = {operation, data, bytes / sizeof *data->out, root, iteration};
  size_t wrong = 0;
  for (int block = 0; block < blocks_of(&r); ++block) {
    float repeating[period]; /* the result has the inputs' period */
    const float* found = data->out + (size_t)block * r.count;
    for (size_t i = 0; i < period; ++i) repeating[i] = expected(&r, block, i);
    for (size_t i = 0; i < r.count; ++i) wrong += found[i] != repeating[i % period];
  }
  return wrong;
}

size_t operation_check_some(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration) {
  const Result r = {operation, data, bytes / sizeof *data->out, root, iteration};
  if (!has_result(operation, data, root) || r.count == 0) return 0;
  const size_t places[3] = {0, r.count / 2, r.count - 1};
  const int last = blocks_of(&r) - 1;
  size_t wrong = 0;
  for (int p = 0; p < 3; ++p) wrong += data->out[(size_t)last * r.count + places[p]] != expected(&r, last, places[p]);
  return wrong;
}
