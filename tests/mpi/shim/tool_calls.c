// What a tool (tool.c) is to see and Stretto to take over: 500 Allreduce, 50 Iallreduce, 50 Wait, 10 Comm_dup, 7 Barrier, 2
// Pcontrol.
#include <mpi.h>
#include <stdio.h>
#ifdef FORTRAN
void mpi_barrier_(MPI_Fint* comm, MPI_Fint* ierror);
static void barrier(void) {
  MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD), error;
  mpi_barrier_(&comm, &error);
}
#else
static void barrier(void) {
  MPI_Barrier(MPI_COMM_WORLD);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, sum, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 10; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int k = 0; k < 50; ++k) {
      const int value = rank + i + k;
      MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
      wrong |= sum != ranks * (i + k) + ranks * (ranks - 1) / 2;
    }
    for (int k = 0; k < 5; ++k) {
      MPI_Request request;
      const int value = rank - k;
      MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      wrong |= sum != ranks * (ranks - 1) / 2 - ranks * k;
    }
    MPI_Comm_free(&comm);
  }
  for (int i = 0; i < 7; ++i) barrier();
  for (int i = 0; i < 3; ++i)
    MPI_Sendrecv_replace(&sum, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < 2; ++i) MPI_Pcontrol(7, "region", 11);
  if (wrong) printf("wrong sums\n");
  MPI_Finalize();
  return wrong;
}
