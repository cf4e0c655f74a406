/* The collectives measured, each callable on two sides: MPI_X, which a preloaded library intercepts, and PMPI_X, the
 * MPI library itself. Data are small whole numbers in floats, so that sums are exact in any order. */
#ifndef BENCH_OPERATION_H
#define BENCH_OPERATION_H

#include <mpi.h>
#include <stddef.h>

enum { side_mpi, side_pmpi, sides };

typedef enum {
  op_allreduce,
  op_reduce,
  op_bcast,
  op_barrier,
  op_gather,
  op_scatter,
  op_allgather,
  op_alltoall,
  op_reduce_scatter_block,
  op_scan,
  op_exscan,
  op_reduce_scatter, /* from here on blocks are of uneven sizes */
  op_gatherv,
  op_scatterv,
  op_allgatherv,
  op_alltoallv,
  operations
} Operation;

typedef struct Bare Bare; /* bare.h */

/* A buffer of a block for each rank, in elements. */
typedef struct {
  int* counts;
  int* places;
} Blocks;

typedef struct {
  MPI_Comm comm;
  int rank, ranks;
  int in_place; /* Allreduce and Reduce: the input stands in the result's place */
  float* in;
  float* out; /* results; Bcast's only buffer */
  Blocks gives, gets;
  Bare* bare; /* does the calls in place of MPI; null: MPI does */
} Data;

extern const char* const operation_names[operations];

/* Returns the operation of that name, or `operations` if there is none. */
Operation operation_named(const char* name);

/* `bytes` are everywhere those of the vector, or of one block where ranks exchange blocks (their mean, where these are uneven).
 */

/* What the largest buffer of a rank holds; and what a rank obtains of a call at least. */
size_t operation_buffer(Operation operation, size_t bytes, int ranks);
size_t operation_moved(Operation operation, size_t bytes, int ranks);

/* Allocates buffers of `most` bytes and touches them. Returns 0, or -1 without memory. */
int data_open(Data* data, MPI_Comm comm, size_t most);
void data_close(Data* data);

/* Says where blocks stand: goes before everything that is done with an operation at another size. */
void operation_lay_out(Operation operation, Data* data, size_t bytes);

/* Rewrites this rank's input of the call number `iteration`, as a program does that computes between calls. */
void operation_fill(Operation operation, Data* data, size_t bytes, int root, unsigned iteration);

/* Overwrites where the result will stand with a value no result has. Goes before operation_fill. */
void operation_poison(Operation operation, Data* data, size_t bytes);

void operation_call(Operation operation, int side, const Data* data, size_t bytes, int root);

/* Number of wrong elements among those looked at: all, or the first, middle and last. */
size_t operation_check_all(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration);
size_t operation_check_some(Operation operation, const Data* data, size_t bytes, int root, unsigned iteration);

#endif
