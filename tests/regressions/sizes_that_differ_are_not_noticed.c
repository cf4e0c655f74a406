// Ranks that give a collective different sizes got wrong numbers, or waited for one another for ever. MPI libraries report
// MPI_ERR_TRUNCATE, or another error, on those that notice. Here no rank may hang, and one at least must be told; but of a
// broadcast that is shorter than the room for it, of which what lies behind must stay as it is.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *in, *out;
static int rank, wrong;

static int bcast(int bytes, MPI_Comm comm) {
  return MPI_Bcast(in, bytes, MPI_CHAR, 0, comm);
}
static int allreduce(int bytes, MPI_Comm comm) {
  return MPI_Allreduce(in, out, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm);
}
static int reduce(int bytes, MPI_Comm comm) {
  return MPI_Reduce(in, out, bytes, MPI_SIGNED_CHAR, MPI_SUM, 0, comm);
}
static int scan(int bytes, MPI_Comm comm) {
  return MPI_Scan(in, out, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm);
}

static void expect_an_error(const char* name, int (*call)(int, MPI_Comm), int first, int second) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  memset(in, rank + 1, 1 << 20);
  int noticed = call(rank == 0 ? first : second, comm) != MPI_SUCCESS, any;
  noticed |= MPI_Barrier(comm) != MPI_SUCCESS;  // who may leave a call at once meets the others in the next
  MPI_Allreduce(&noticed, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  const int is_short = call == bcast && first < second && second < 1 << 20;
  if (is_short ? any || in[first - 1] != 1 || in[first] != rank + 1 : !any) {
    printf("rank %d: wrong: %s of %d and %d bytes\n", rank, name, first, second);
    ++wrong;
  }
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  static const int sizes[][2] = {{40, 4},      {4, 40},      {1 << 20, 4},    {4, 1 << 20},
                                 {4096, 8192}, {8192, 4096}, {65536, 131072}, {131072, 65536}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  in = calloc(1, 1 << 20);
  out = calloc(1, 1 << 20);
  for (int i = 0; i < 8; ++i) {
    expect_an_error("bcast", bcast, sizes[i][0], sizes[i][1]);
    expect_an_error("allreduce", allreduce, sizes[i][0], sizes[i][1]);
    expect_an_error("reduce", reduce, sizes[i][0], sizes[i][1]);
    expect_an_error("scan", scan, sizes[i][0], sizes[i][1]);
  }
  expect_an_error("bcast", bcast, 100000, 200000);
  expect_an_error("bcast", bcast, 200000, 100000);
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  free(in);
  free(out);
  MPI_Finalize();
  return wrong != 0;
}
