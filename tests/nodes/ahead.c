/* Ranks that run calls ahead of one that is waited for: what a root's MPI has to keep meanwhile. Root 0 gathers blocks of 2 MiB,
 * of which the last rank's come late. Prints the most memory that the root has had, in MiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long most_mib(void) {
  char line[256];
  long kib = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "VmHWM: %ld", &kib);
  if (file) fclose(file);
  return kib / 1024;
}

int main(int argc, char** argv) {
  enum { block = 2 << 20, calls = 150 };
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* own = malloc(block);
  char* all = rank == 0 ? malloc((size_t)size * block) : NULL;
  memset(own, rank + 1, block);
  MPI_Barrier(MPI_COMM_WORLD);
  const struct timespec late = {2, 0};
  if (rank == size - 1) nanosleep(&late, NULL);
  int right = 1;
  for (int i = 0; i < calls; ++i) {
    MPI_Gather(own, block, MPI_BYTE, all, block, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < size; ++r)
      right = right && all[(size_t)r * block] == r + 1 && all[(size_t)(r + 1) * block - 1] == r + 1;
  }
  if (rank == 0) printf("%s, most %ld MiB\n", right ? "right" : "wrong", most_mib());
  free(own);
  free(all);
  MPI_Finalize();
  return 0;
}
