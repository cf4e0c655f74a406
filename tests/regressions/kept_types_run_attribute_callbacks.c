// Nonblocking and persistent collectives keep the program's datatypes, which it may free meanwhile. Stretto kept duplicates, for
// which MPI calls the copy and delete functions of the program's attributes.
#include <mpi.h>
#include <stdio.h>

static int copied, deleted;
static int copy(MPI_Datatype type, int key, void* extra, void* in, void* out, int* flag) {
  (void)type, (void)key, (void)extra;
  *(void**)out = in;
  *flag = 1;
  ++copied;
  return MPI_SUCCESS;
}
static int drop(MPI_Datatype type, int key, void* value, void* extra) {
  (void)type, (void)key, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, key, wrong = 0, given[8], got[8];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_create_keyval(copy, drop, &key, NULL);
  for (int persistent = 0; persistent < (MPI_VERSION >= 4 ? 2 : 1); ++persistent) {
    MPI_Datatype gaps;
    MPI_Request request;
    MPI_Type_vector(4, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Type_set_attr(gaps, key, &copied);
    for (int i = 0; i < 8; ++i) given[i] = 10 * rank + i, got[i] = -1;
    int* data = rank == 0 ? given : got;
#if MPI_VERSION >= 4
    if (persistent) {
      MPI_Bcast_init(data, 1, gaps, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
      MPI_Start(&request);
    }
#endif
    if (!persistent) MPI_Ibcast(data, 1, gaps, 0, MPI_COMM_WORLD, &request);
    wrong += copied != 0 || deleted != persistent;
    MPI_Type_free(&gaps);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent) MPI_Request_free(&request);
    for (int i = 0; rank == 1 && i < 8; ++i) wrong += got[i] != (i % 2 || i == 7 ? -1 : i);
    wrong += copied != 0 || deleted != persistent + 1;
  }
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
