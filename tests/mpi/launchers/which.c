/* Prints the first line of what the MPI library says of itself, and on rank 0 alone. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n")] = 0;
  if (rank == 0) puts(text);
  MPI_Finalize();
  return 0;
}
