/* A communicator is revoked by its last rank, in which the others are waiting for that in a collective: blocking, nonblocking or
 * persistent, of so many elements. All must be told so, then and in every later call, and other communicators work on.
 *
 * revoke blocking|world|nonblocking|persistent COUNT. world: as blocking, MPI_COMM_WORLD itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ulfm.h"

static int class_of(int code) {
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  return kind;
}

static int handled;
static void note(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "blocking";
  const int count = argc > 2 ? atoi(argv[2]) : 8;
  int rank, size, wrong = 0, later = MPI_SUCCESS, all = 0;
  float *in = calloc((size_t)count, sizeof(float)), *out = calloc((size_t)count, sizeof(float));
  MPI_Comm comm, safe;
  MPI_Errhandler handler;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int world = strcmp(how, "world") == 0;
  comm = MPI_COMM_WORLD;
  if (!world) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &safe);
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  for (int i = 0; i < 100; ++i) wrong |= MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm) != MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;
  const int persistent = strcmp(how, "persistent") == 0;
  if (persistent) MPI_Allreduce_init(in, out, count, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  MPI_Barrier(safe);

  int code = MPI_SUCCESS;
  if (rank == size - 1) {
    usleep(200000);
    wrong |= MPIX_Comm_revoke(comm) != MPI_SUCCESS;
  } else if (world || strcmp(how, "blocking") == 0) {
    code = MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm);
  } else {
    code = persistent ? MPI_Start(&request) : MPI_Iallreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (rank < size - 1) wrong |= class_of(code) != MPIX_ERR_REVOKED;
  if (persistent) {
    later = MPI_Start(&request);
    if (later == MPI_SUCCESS) later = MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong |= class_of(later) != MPIX_ERR_REVOKED;
    MPI_Request_free(&request);
  }
  later = MPI_Bcast(in, 1, MPI_FLOAT, 0, comm);
  wrong |= class_of(later) != MPIX_ERR_REVOKED || class_of(MPI_Barrier(comm)) != MPIX_ERR_REVOKED;
  if (wrong) printf("rank %d: class %d, later %d, not %d\n", rank, class_of(code), class_of(later), MPIX_ERR_REVOKED);
  const int calls = handled;
  for (int i = 0; i < 5; ++i) { /* who waits here must not ask the revoked one again and again */
    if (rank == i % size) usleep(20000);
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, safe);
  }
  if (handled > calls + 2) printf("rank %d: %d calls of the error handler for nothing\n", rank, handled - calls), wrong = 1;
  const int early =
      strcmp(how, "blocking") == 0; /* else Open MPI's own may not hear of it: of a freed one it tells nobody more */
  if (early) MPI_Comm_free(&comm);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, safe);
  if (!early && !world) MPI_Comm_free(&comm);
  MPI_Comm_free(&safe);
  MPI_Errhandler_free(&handler);
  if (rank == 0 && all == 0) printf("right\n");
  free(in);
  free(out);
  MPI_Finalize();
  return all != 0;
}
