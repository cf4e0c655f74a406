// An element of more than 2 GiB as programs make it for MPI before version 4 (whole chunks and a rest, in a struct): MPI_Pack
// cannot count it, and Stretto gave up the communicator.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const size_t bytes = ((size_t)1 << 31) + 1000, chunk = (size_t)1 << 30;
  int rank, wrong = 0, sum = 0, one = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype chunks, rest, whole;
  MPI_Type_vector((int)(bytes / chunk), (int)chunk, (int)chunk, MPI_BYTE, &chunks);
  MPI_Type_contiguous((int)(bytes % chunk), MPI_BYTE, &rest);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, (MPI_Aint)(bytes / chunk * chunk)}, (MPI_Datatype[]){chunks, rest},
                         &whole);
  MPI_Type_commit(&whole);
  char* data = calloc(bytes, 1);
  const size_t places[] = {0, 5, chunk - 1, chunk, 2 * chunk - 1, 2 * chunk, bytes - 1};
  for (int i = 0; rank == 0 && i < 7; ++i) data[places[i]] = (char)(i + 1);
  MPI_Bcast(data, 1, whole, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 7; ++i) wrong += data[places[i]] != i + 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d: %s\n", rank, wrong || sum != 2 ? "wrong" : "right");
  free(data);
  MPI_Finalize();
  return wrong != 0;
}
