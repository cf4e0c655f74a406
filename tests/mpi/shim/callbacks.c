// The C part of callbacks.F90: a library whose attribute, when deleted, completes a nonblocking collective that a late rank has
// not started yet, and frees the communicator of that.
#include <mpi.h>
#include <unistd.h>

static MPI_Comm inner;
static MPI_Request request;
static int mine, sum;

static int finish(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return MPI_Comm_free(&inner);
}

void attach_library(MPI_Fint comm, int rank) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finish, &key, NULL);
  MPI_Comm_set_attr(MPI_Comm_f2c(comm), key, &key);
  MPI_Comm_dup(MPI_COMM_WORLD, &inner);
  mine = rank + 1;
  if (rank == 1) usleep(300000);
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inner, &request);
}

int result_of_library(void) {
  return sum;
}
