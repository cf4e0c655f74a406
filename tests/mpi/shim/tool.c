// A tool as many are: MPI_X of its own that go on by PMPI_X, in Fortran too. At the end rank 0 tells what it has seen.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>

static int allreduces, waits, duplicates, barriers, in_fortran;

int MPI_Init(int* argc, char*** argv) {
  return PMPI_Init(argc, argv);
}
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return PMPI_Allreduce(in, out, count, type, op, comm);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return PMPI_Wait(request, status);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  ++duplicates;
  return PMPI_Comm_dup(comm, copy);
}
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("tool: %d %d %d %d\n", allreduces, waits, duplicates, barriers + in_fortran);
  fflush(stdout);
  return PMPI_Finalize();
}
#ifdef FORTRAN
void mpi_barrier_(MPI_Fint* comm, MPI_Fint* ierror) {
  ++in_fortran;
  *ierror = PMPI_Barrier(PMPI_Comm_f2c(*comm));
}
#endif
int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}
