// MPICH reports null buffers, requests and places for communicators, MPI_IN_PLACE where it may not be, and communicators that are
// no more. Stretto made memory accesses of them, and divided by the size of a communicator for which an error handler that
// returns had made a success of MPI's failure to tell it.
#include <mpi.h>
#include <stdio.h>

static int handled;
static void note(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, value = 1, values[2] = {0, 0}, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifndef OPEN_MPI  // crashes itself
  MPI_Comm copy, gone;
  MPI_Errhandler handler;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  wrong += MPI_Bcast(NULL, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
  wrong += MPI_Allreduce(&value, NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
  wrong += MPI_Allgather(&value, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS;
  wrong += MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, NULL) == MPI_SUCCESS;
  wrong += MPI_Comm_dup(MPI_COMM_WORLD, NULL) == MPI_SUCCESS;
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  wrong += MPI_Test(&request, NULL, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  gone = copy;
  MPI_Comm_free(&copy);
  MPI_Barrier(gone);
  wrong += handled == 0;
  MPI_Errhandler_free(&handler);
#endif
  MPI_Allgather(&value, 1, MPI_INT, values, 1, MPI_INT, MPI_COMM_WORLD);
  wrong += values[0] != 1 || values[1] != 1;
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
