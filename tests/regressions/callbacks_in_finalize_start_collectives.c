// MPI_Finalize begins with the delete callbacks of MPI_COMM_SELF's attributes, which may do whatever a program may. Stretto had
// ended before them: persistent collectives that were started there failed.
#include <mpi.h>
#include <stdio.h>

static int rank, size, wrong;

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
static int given, prepared_sum;
static MPI_Request prepared = MPI_REQUEST_NULL;

static void prepare(void) {
  MPI_Allreduce_init(&given, &prepared_sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &prepared);
}
static void run_prepared(int round) {
  given = rank + round;
  prepared_sum = 0;
  MPI_Start(&prepared);
  MPI_Wait(&prepared, MPI_STATUS_IGNORE);
  wrong += prepared_sum != size * (size - 1) / 2 + size * round;
}
#else
static MPI_Request prepared = MPI_REQUEST_NULL;
static void prepare(void) {}
static void run_prepared(int round) {
  (void)round;
}
#endif

static int last_calls(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  MPI_Request request;
  int sum = 0, started_sum = 0;
  MPI_Iallreduce(&rank, &started_sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  run_prepared(1);
  run_prepared(2);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (prepared != MPI_REQUEST_NULL) MPI_Request_free(&prepared);
  wrong += sum != size * (size - 1) / 2 || started_sum != sum;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int key;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_calls, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  prepare();
  run_prepared(0);
  MPI_Finalize();
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  return wrong != 0;
}
