// MPI_Alltoallw_init with MPI_DATATYPE_NULL ended the job whatever the communicator's error handler: Stretto duplicated it. And
// Open MPI refuses that handle even of a block in which there is nothing, which Stretto took.
#include <mpi.h>
#include <stdio.h>

static int rank, wrong;

static void refused(const char* call, int code) {
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  if (kind != MPI_ERR_TYPE) printf("rank %d: %s: class %d\n", rank, call, kind), ++wrong;
}
#define REFUSED(call) refused(#call, call)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int a[2] = {rank, rank}, b[2] = {-1, -1};
  const int counts[2] = {1, 1}, bytes[2] = {0, 4};
  const MPI_Datatype ints[2] = {MPI_INT, MPI_INT}, null[2] = {MPI_INT, MPI_DATATYPE_NULL};
  REFUSED(MPI_Alltoallw(a, counts, bytes, null, b, counts, bytes, ints, comm));
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  MPI_Request request;
  REFUSED(MPI_Alltoallw_init(a, counts, bytes, null, b, counts, bytes, ints, comm, MPI_INFO_NULL, &request));
#endif
#ifdef OPEN_MPI
  const int one[2] = {1, 0};
  MPI_Request started;
  REFUSED(MPI_Alltoallw(a, one, bytes, null, b, one, bytes, ints, comm));
  REFUSED(MPI_Ialltoallw(a, one, bytes, ints, b, one, bytes, null, comm, &started));
#if OMPI_MAJOR_VERSION >= 5
  REFUSED(MPI_Alltoallw_init(a, one, bytes, ints, b, one, bytes, null, comm, MPI_INFO_NULL, &request));
#endif
#endif
  MPI_Alltoallw(a, counts, bytes, ints, b, counts, bytes, ints, comm);
  wrong += b[0] != 0 || b[1] != 1;
  MPI_Comm_free(&comm);
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
