#include "operation.h"

#include <stdlib.h>
#include <string.h>

const char* const operation_names[operations] = {"allreduce", "reduce", "bcast", "barrier"};

/* Through pointers, so that the two sides differ in nothing but the function. */
typedef struct {
  int (*allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*reduce)(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
  int (*bcast)(void*, int, MPI_Datatype, int, MPI_Comm);
  int (*barrier)(MPI_Comm);
} Side;

static const Side side_table[sides] = {
    {MPI_Allreduce, MPI_Reduce, MPI_Bcast, MPI_Barrier},
    {PMPI_Allreduce, PMPI_Reduce, PMPI_Bcast, PMPI_Barrier},
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
  return operation == op_reduce || operation == op_bcast;
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
  data->in = touched_buffer(bytes);
  data->out = touched_buffer(bytes);
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
  if (!data->in_place || (operation == op_reduce && data->rank != root)) return data->in;
  return data->out;
}

void operation_fill(Operation operation, Data* data, size_t bytes, int root, unsigned iteration) {
  float* buffer = input(operation, data, root);
  if (!buffer) return;
  const float* pattern = ring + offset(data->rank, iteration);
  size_t count = bytes / sizeof *buffer, i = 0;
  for (; i + chunk <= count; i += chunk) memcpy(buffer + i, pattern, chunk * sizeof *buffer);
  memcpy(buffer + i, pattern, (count - i) * sizeof *buffer);
}

void operation_poison(Data* data, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof *data->out; ++i) data->out[i] = -1;
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
    default:
      use->barrier(data->comm);
      break;
  }
}

static float expected(Operation operation, const Data* data, size_t i, int root, unsigned iteration) {
  if (operation == op_bcast) return ring[(i + offset(root, iteration)) % period];
  float sum = 0;
  for (int rank = 0; rank < data->ranks; ++rank) sum += ring[(i + offset(rank, iteration)) % period];
  return sum;
}

static int has_result(Operation operation, const Data* data, int root) {
  return operation != op_barrier && (operation != op_reduce || data->rank == root);
}

size_t operation_check_all(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration) {
  if (!has_result(operation, data, root)) return 0;
  float repeating[period]; /* the result has the inputs' period */
  for (size_t i = 0; i < period; ++i) repeating[i] = expected(operation, data, i, root, iteration);
  size_t wrong = 0;
  for (size_t i = 0; i < bytes / sizeof *data->out; ++i) wrong += data->out[i] != repeating[i % period];
  return wrong;
}

size_t operation_check_some(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration) {
  size_t count = bytes / sizeof *data->out;
  if (!has_result(operation, data, root) || count == 0) return 0;
  const size_t places[3] = {0, count / 2, count - 1};
  size_t wrong = 0;
  for (int p = 0; p < 3; ++p) wrong += data->out[places[p]] != expected(operation, data, places[p], root, iteration);
  return wrong;
}
