/* Barrier, Bcast, Reduce and Allreduce of small messages in their plainest form: each rank stores what it gives into lines that
 * the others watch. No library, no argument is looked at, no algorithm chosen. It tells how much of a call's time is this
 * machine's. */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stdatomic.h>

#include "operation.h"

enum { bare_most = 1024 }; /* bytes */

typedef struct BareBoard BareBoard;

struct Bare {
  BareBoard* boards; /* of each rank */
  size_t bytes;      /* of all of them */
  unsigned number;   /* calls made */
  unsigned drained;  /* the newest call that everybody is known to have ended */
  int sharing;       /* more ranks than cores: a rank that waits yields */
};

/* Collective, on one node. Returns 0, or -1 when the ranks do not share one or its memory. */
int bare_open(Bare* bare, MPI_Comm comm, int sharing);
void bare_close(Bare* bare);

/* Whether there is a bare form of it. */
int bare_does(Operation operation, size_t bytes);
void bare_call(Bare* bare, Operation operation, const Data* data, size_t bytes, int root);

#endif
