/* A rank dies amid many collectives. The others revoke the communicator, make a smaller one and go on with it, as programs that
 * tolerate faults do; sums tell who took part.
 *
 * shrink COUNT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ulfm.h"

enum { calls = 1500, death = 500 };
static int wrong = 0, exit_code = 0;

static void leave(int unused) {
  static const char words[] = "left MPI_Finalize\n";
  (void)unused;
  if (write(STDERR_FILENO, words, sizeof words - 1) < 0) exit_code = 1;
  _exit(exit_code);
}

static int class_of(int code) {
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  return kind;
}

/* Open MPI 5.0.11's MPI_Finalize itself waits for ever for the dead now and then: 6 of 60 runs without Stretto. */
static void finalize_without_the_dead(int code) {
  exit_code = code;
  fflush(stdout);
  signal(SIGALRM, leave);
  alarm(5);
  MPI_Finalize();
}

/* The call that the slowest has come to. */
static int repair(MPI_Comm* comm, int call) {
  int least = call;
  MPI_Comm smaller;
  MPIX_Comm_revoke(*comm);
  if (MPIX_Comm_shrink(*comm, &smaller) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_free(comm);
  *comm = smaller;
  MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
  MPI_Allreduce(&call, &least, 1, MPI_INT, MPI_MIN, *comm);
  return least;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  signal(SIGPIPE,
         SIG_IGN); /* Open MPI 5.0.11's TCP writes to the dead one's connection, which ends a process that does not ignore it. */
  const int count = argc > 1 ? atoi(argv[1]) : 8;
  int rank, size, left, repairs = 0;
  int *in = calloc((size_t)count, sizeof(int)), *out = calloc((size_t)count, sizeof(int));
  MPI_Comm comm;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < calls; ++i) {
    if (i == death && rank == size - 1) raise(SIGKILL);
    for (int k = 0; k < count; ++k) in[k] = i + k;
    const int kind = class_of(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm));
    MPI_Comm_size(comm, &left);
    if (kind == MPI_SUCCESS) {
      for (int k = 0; k < count; ++k) wrong |= out[k] != left * (i + k);
    } else {
      wrong |= kind != MPIX_ERR_PROC_FAILED && kind != MPIX_ERR_REVOKED;
      if (wrong) printf("rank %d: class %d\n", rank, kind);
      i = repair(&comm, i) - 1;
      ++repairs;
    }
  }
  MPI_Comm_size(comm, &left);
  const int good = !wrong && left == size - 1 && repairs == 1;
  printf("rank %d: %s: %d ranks left, repaired %d times\n", rank, good ? "right" : "wrong", left, repairs);
  MPI_Comm_free(&comm);
  free(in);
  free(out);
  finalize_without_the_dead(!good);
  return !good;
}
