/* A program that ends in another way than by MPI_Finalize: "kill", "abort", "exit", "crash", or "fork" (a child that calls MPI no
 * more and ends first). Before that, each rank calls MPI_Allreduce 1000 times and begins to send. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, i, one = 1, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (i = 0; i < 1000; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(argv[1], "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      MPI_Pcontrol(3);
      _exit(0);
    }
    waitpid(child, NULL, 0);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Finalize();
  }
  if (rank == 1) {
    usleep(500000); /* until the other one is where it is said to be */
    if (strcmp(argv[1], "kill") == 0) raise(SIGKILL);
    if (strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 9);
    if (strcmp(argv[1], "crash") == 0) *(volatile int*)0 = 1;
    exit(0);
  }
  if (strcmp(argv[1], "exit") == 0) exit(0);
  /* Hangs until the job is ended: the trace says where. */
  MPI_Recv(&one, 1, MPI_INT, 1, 33, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return 0;
}
