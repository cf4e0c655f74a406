/* The command line of collective_bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stddef.h>

#include "measure.h"

enum { max_sizes = 64 };

typedef struct {
  int wanted[operations];
  size_t sizes[max_sizes];
  int size_count;
  int balanced, batch, automatic; /* modes asked for; see options_want */
  size_t batch_limit;             /* batches are taken up to this size */
  size_t most;                    /* bytes: points at which a rank's buffer would be larger are left out */
  Plan plan;
  int decline;
  int bare; /* instead of MPI_X */
  int in_place;
  const char* json; /* path, or null */
} Options;

/* Fills options from argv. Returns 0; 1 when help was asked for; -1 after a wrong argument. Only the rank with `speak`
 * prints the help or the reason. */
int parse_options(int argc, char** argv, int speak, Options* options);

/* Whether a point is to be measured in this mode. */
int options_want(const Options* options, Mode mode, size_t bytes);

#endif
