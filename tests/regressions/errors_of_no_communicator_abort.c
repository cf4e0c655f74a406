// Stretto asked MPI at MPI_Init which types it has, with MPI_ERRORS_RETURN on MPI_COMM_SELF and MPI_COMM_WORLD, and then set the
// handlers that it had found. MPICH takes MPI_COMM_WORLD's for errors of calls without a communicator, and of communicators made
// before, only while none was ever set on MPI_COMM_SELF: so the job ended where the program had asked for errors to be returned.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Comm early, made;
  MPI_Group group;
  int size, rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &early);
  MPI_Comm_group(early, &group);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#ifdef OPEN_MPI  // goes by the standard, which names MPI_COMM_SELF, and has a handler on every communicator
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(early, MPI_ERRORS_RETURN);
#endif
  int returned = (MPI_Type_size(MPI_DATATYPE_NULL, &size) != MPI_SUCCESS) + (MPI_Comm_create(early, group, NULL) != MPI_SUCCESS);
  MPI_Comm_create(early, group, &made);
  MPI_Comm_free(&made);
  MPI_Comm_free(&early);
  MPI_Group_free(&group);
  printf("rank %d: %s\n", rank, returned == 2 ? "right" : "wrong: an error was not noticed");
  MPI_Finalize();
  return returned == 2 ? 0 : 1;
}
