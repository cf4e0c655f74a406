// A tool as many are: MPI_X of its own that go on by PMPI_X, in Fortran too. At the end rank 0 tells what it has seen.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef PASSES_BY  // goes on by what stands behind it, as some do
#include <dlfcn.h>
#define GOES_ON(function) ((__typeof__(&P##function))dlsym(RTLD_NEXT, #function))
#else
#define GOES_ON(function) P##function
#endif

static int allreduces, waits, duplicates, barriers, in_fortran, regions;

int MPI_Init(int* argc, char*** argv) {
  return GOES_ON(MPI_Init)(argc, argv);
}
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return GOES_ON(MPI_Allreduce)(in, out, count, type, op, comm);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return GOES_ON(MPI_Wait)(request, status);
}
// Open MPI's MPI_Sendrecv_replace calls PMPI_Sendrecv, which is not the program's.
int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status) {
  return GOES_ON(MPI_Sendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  ++duplicates;
  return GOES_ON(MPI_Comm_dup)(comm, copy);
}
// Its further arguments are the tool's alone.
int MPI_Pcontrol(const int level, ...) {
  va_list more;
  va_start(more, level);
  const char* const name = va_arg(more, const char*);
  regions += level == 7 && strcmp(name, "region") == 0 && va_arg(more, int) == 11;
  va_end(more);
  return GOES_ON(MPI_Pcontrol)(level);
}
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("tool: %d %d %d %d %d\n", allreduces, waits, duplicates, barriers + in_fortran, regions);
  fflush(stdout);
  return GOES_ON(MPI_Finalize)();
}
#ifdef FORTRAN
void mpi_barrier_(MPI_Fint* comm, MPI_Fint* ierror) {
  ++in_fortran;
  *ierror = PMPI_Barrier(PMPI_Comm_f2c(*comm));
}
#endif
int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return GOES_ON(MPI_Barrier)(comm);
}
