// A program with an MPI_Wait of its own, as one that a profiling library is linked into has, and one that calls the PMPI names
// outright: Stretto's nonblocking and persistent collectives must end there too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

enum { count = 5000, kinds = 9, rounds = 4 };
static int waits, rank, ranks, wrong;
static int in[2][count], out[2][count];
static MPI_Request requests[2];

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return PMPI_Wait(request, status);
}

static void by_waitany(void) {
  for (int k = 0, which; k < 2; ++k) wrong |= PMPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE) != MPI_SUCCESS || which < 0;
}
static void by_waitsome(void) {
  int which[2];
  for (int ended = 0, some = 0; ended < 2 && some >= 0; ended += some)
    PMPI_Waitsome(2, requests, &some, which, MPI_STATUSES_IGNORE);
}
static void by_test(void) {
  for (int k = 0; k < 2; ++k)
    for (int done = 0; !done;) PMPI_Test(&requests[k], &done, MPI_STATUS_IGNORE);
}
static void by_testall(void) {
  for (int done = 0; !done;) PMPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
}
static void by_testany(void) {
  for (int ended = 0, which, done; ended < 2; ended += done) PMPI_Testany(2, requests, &which, &done, MPI_STATUS_IGNORE);
}
static void by_testsome(void) {
  int which[2];
  for (int ended = 0, some; ended < 2; ended += some) PMPI_Testsome(2, requests, &some, which, MPI_STATUSES_IGNORE);
}

static void complete(int kind) {
  switch (kind % kinds) {
    case 0:
    case 1:
      for (int k = 0; k < 2; ++k) MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
      return;
    case 2:
      PMPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      return;
    case 3:
      by_waitany();
      return;
    case 4:
      by_waitsome();
      return;
    case 5:
      by_test();
      return;
    case 6:
      by_testall();
      return;
    case 7:
      by_testany();
      return;
    default:
      by_testsome();
  }
}

static void fill(int seed) {
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < count; ++i) in[k][i] = seed + rank * (k + 1) + i, out[k][i] = -1;
}
static void compare(int seed) {
  const int all = ranks * (ranks - 1) / 2;
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < count; ++i) wrong |= out[k][i] != ranks * (seed + i) + all * (k + 1);
}

static void nonblocking(void) {
  for (int kind = 0; kind < kinds * rounds; ++kind) {
    fill(kind);
    for (int k = 0; k < 2; ++k) MPI_Iallreduce(in[k], out[k], count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[k]);
    complete(kind);
    for (int k = 0; k < 2; ++k) wrong |= requests[k] != MPI_REQUEST_NULL;
    compare(kind);
  }
}

static void persistent(void) {
#if MPI_VERSION >= 4
  for (int k = 0; k < 2; ++k)
    MPI_Allreduce_init(in[k], out[k], count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k]);
  for (int kind = 0; kind < kinds * rounds; ++kind) {
    fill(kind);
    if (kind & 1)
      PMPI_Startall(2, requests);
    else
      for (int k = 0; k < 2; ++k) PMPI_Start(&requests[k]);
    complete(kind);
    compare(kind);
  }
  for (int k = 0; k < 2; ++k) PMPI_Request_free(&requests[k]);
#endif
}

// Collectives cannot be cancelled.
static void refused_cancel(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  fill(1);
  for (int k = 0; k < 2; ++k) MPI_Iallreduce(in[k], out[k], count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[k]);
  wrong |= PMPI_Cancel(&requests[0]) == MPI_SUCCESS;
  PMPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  compare(1);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int (*const accelerating)(const char**) = (int (*)(const char**))dlsym(RTLD_DEFAULT, "stretto_accelerating");
  const char* why = "";
  if (accelerating && !accelerating(&why)) printf("rank %d: not accelerated: %s\n", rank, why), wrong = 1;
  nonblocking();
  if (accelerating) refused_cancel();  // MPICH itself ends a job that cancels one of its own
  persistent();
  const int wanted = 2 * 2 * rounds * (MPI_VERSION >= 4 ? 2 : 1);
  printf("rank %d: %s\n", rank, wrong || waits != wanted ? "wrong" : "right");
  MPI_Finalize();
  return wrong || waits != wanted;
}
