/* Three Allreduces, then an end: argv[1] finalize; abort (by rank 1); fork (a child of rank 0 aborts); late (rank 0 aborts after
 * MPI_Finalize). */
#include <mpi.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* end = argc > 1 ? argv[1] : "finalize";
  int rank, in = 1, out;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(end, "abort") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  if (!strcmp(end, "abort")) pause();
  if (!strcmp(end, "fork") && rank == 0) {
    pid_t child = fork();
    if (child == 0) MPI_Abort(MPI_COMM_WORLD, 4);
    waitpid(child, NULL, 0);
  }
  MPI_Finalize();
  if (!strcmp(end, "late") && rank == 0) MPI_Abort(MPI_COMM_WORLD, 5);
  return 0;
}
