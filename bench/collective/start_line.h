/* The start line: a barrier that is not the measured library's, so that both sides of a comparison start balanced and
 * nothing of the library is in motion when they do. One node only. */
#ifndef BENCH_START_LINE_H
#define BENCH_START_LINE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct {
  _Alignas(128) atomic_uint arrived;
  _Alignas(128) atomic_uint generation;
  _Atomic uint64_t start; /* the tick at which all go, where every rank has a core */
  atomic_uint halted;     /* the generation that is called off; naming it, a slow rank cannot take it for its own */
  _Alignas(128) atomic_uint there;
  _Alignas(128) atomic_uint back;
} StartLineShared;

typedef struct {
  StartLineShared* shared;
  unsigned ranks;
  int sharing;             /* more ranks than cores: sleep while waiting, and go at once when released */
  int first_cpu, last_cpu; /* that any of the ranks may use */
} StartLine;

/* Collective over `comm`. Returns 0, or -1 when the ranks do not share a node or its memory. */
int start_line_open(StartLine* line, MPI_Comm comm, int sharing);
void start_line_close(StartLine* line);

/* Returns on all ranks together: within some ten nanoseconds where each has a core. 0: go. 1: the race is called off, on
 * all ranks alike. */
int start_line_wait(StartLine* line);

/* Calls off the next race: the one for which this rank comes to the line next. By one rank. */
void start_line_halt(StartLine* line);

/* What a cache line takes from one core to the other, in ns: half a round trip between ranks 0 and 1, the best of
 * many tries. It tells machines, and moments of a virtual machine, apart. Where ranks share cores they sleep meanwhile, so as not
 * to be moved, and two threads of rank 0 stand on the first and the last core that ranks may use; the other ranks get 0. So do
 * all where that is one core, or there is one rank. */
double start_line_hop_ns(StartLine* line, int rank);

#endif
