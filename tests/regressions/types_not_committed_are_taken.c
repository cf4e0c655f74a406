// Both MPIs refuse datatypes that are not committed: MPI_ERR_TYPE, and one call of the error handler. Stretto took them.
#include <mpi.h>
#include <stdio.h>

static int rank, wrong, handled;
static MPI_Comm comm;

static void note(MPI_Comm* where, int* code, ...) {
  (void)where, (void)code;
  ++handled;
}

static void refused(const char* call, int code) {
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  // MPICH makes a success of it once a handler has returned.
  const int good = (kind == MPI_ERR_TYPE || kind == MPI_SUCCESS) && handled == 1;
  if (!good) printf("rank %d: %s: class %d, handled %d times\n", rank, call, kind, handled);
  wrong += !good;
  handled = 0;
}
#define REFUSED(call) refused(#call, call)

static void first(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in, (void)inout, (void)count, (void)type;
}

// Nothing that was found out of a datatype is believed of the next that has its handle.
static void handles_come_again(void) {
  for (int i = 0; i < 8; ++i) {
    MPI_Datatype type;
    int value[2] = {rank == 0 ? i : -1, rank == 0 ? i : -1};
    MPI_Type_contiguous(1 + i % 2, MPI_INT, &type);
    REFUSED(MPI_Bcast(value, 1, type, 0, comm));
    MPI_Type_commit(&type);
    MPI_Bcast(value, 1, type, 0, comm);
    MPI_Bcast(value, 1, type, 0, comm);
    wrong += value[0] != i || value[1] != (rank == 0 || i % 2 ? i : -1) || handled != 0;
    MPI_Type_free(&type);
  }
}

static void prepared(const char* call, int code, MPI_Request* request) {
  refused(call, code);
  if (*request != MPI_REQUEST_NULL) MPI_Request_free(request);
}
#define PREPARED(call) prepared(#call, call, &request)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Datatype type;
  MPI_Type_contiguous(1, MPI_INT, &type);
  MPI_Op op;
  MPI_Op_create(first, 1, &op);
  int a[4] = {0}, b[4] = {0};
  const int counts[2] = {1, 1}, at[2] = {0, 1}, bytes[2] = {0, 4};
  const MPI_Datatype ints[2] = {MPI_INT, MPI_INT}, types[2] = {type, type};
  MPI_Request request = MPI_REQUEST_NULL;
  REFUSED(MPI_Bcast(a, 1, type, 0, comm));
  REFUSED(MPI_Reduce(a, b, 1, type, op, 0, comm));
  REFUSED(MPI_Allreduce(a, b, 1, type, op, comm));
  REFUSED(MPI_Reduce_scatter_block(a, b, 1, type, op, comm));
  REFUSED(MPI_Scan(a, b, 1, type, op, comm));
  REFUSED(MPI_Gather(a, 1, type, b, 1, MPI_INT, 0, comm));
  REFUSED(MPI_Gatherv(a, 1, type, b, counts, at, MPI_INT, 0, comm));
  REFUSED(MPI_Allgather(a, 1, type, b, 1, MPI_INT, comm));
  REFUSED(MPI_Allgatherv(a, 1, type, b, counts, at, MPI_INT, comm));
  REFUSED(MPI_Alltoall(a, 1, type, b, 1, MPI_INT, comm));
  REFUSED(MPI_Alltoall(a, 1, MPI_INT, b, 1, type, comm));
  REFUSED(MPI_Alltoallv(a, counts, at, MPI_INT, b, counts, at, type, comm));
  REFUSED(MPI_Alltoallw(a, counts, bytes, types, b, counts, bytes, ints, comm));
  REFUSED(MPI_Ibcast(a, 1, type, 0, comm, &request));
  REFUSED(MPI_Igather(a, 1, type, b, 1, MPI_INT, 0, comm, &request));
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  PREPARED(MPI_Bcast_init(a, 1, type, 0, comm, MPI_INFO_NULL, &request));
  PREPARED(MPI_Alltoallw_init(a, counts, bytes, types, b, counts, bytes, ints, comm, MPI_INFO_NULL, &request));
#endif
#ifdef OPEN_MPI  // does not look at what a root receives with: nor must Stretto, or the root would be alone
  a[0] = rank + 1;
  MPI_Gather(a, 1, MPI_INT, b, 1, rank == 0 ? type : MPI_INT, 0, comm);
  wrong += handled != 0 || (rank == 0 && (b[0] != 1 || b[1] != 2));
#endif
  handles_come_again();
  MPI_Type_free(&type);
  MPI_Op_free(&op);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
