/* How one point (a collective at a size) is measured: samples of both sides in turn, in an order that changes from pair
 * to pair, each from the start line on, times kept in memory and gathered when the point is done. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "operation.h"
#include "start_line.h"

typedef enum {
  mode_balanced, /* a sample is one call: all inputs rewritten, start line, call */
  mode_batch,    /* a sample is a run of calls back to back, inputs rewritten before each, the root moving on */
} Mode;

typedef struct {
  double budget_ms; /* time to aim at for a point, never thrice that once `least` samples a side are taken */
  unsigned least;
  int one_side; /* side_mpi or side_pmpi to time that alone, or `sides` for both in turn */
  int root;
  int oversubscribed; /* more ranks than cores: a sample then begins when the first rank may run, not the last */
} Plan;

typedef struct {
  double median, p10; /* in the unit of the values they are of; microseconds in a Point */
} Times;

typedef struct {
  Times side[sides]; /* meaningful on rank 0, for the sides that were timed */
  unsigned samples;  /* of each side (one more or less where the point was cut short); on rank 0 */
  unsigned calls;    /* in a sample */
  size_t wrong;      /* wrong elements found, over all ranks; the same on all ranks */
  double floor_us;   /* what the machine itself takes (floor.h); 0 where that is not known */
  double hop_ns[2];  /* what a cache line took from core to core, before the samples and after (start_line_hop_ns) */
} Point;

/* Collective. Returns 0, or -1 without memory.
 * Balanced: max exit - max entry over the ranks (oversubscribed: - min entry, since ranks that share a core are all
 * ready when the first one runs). Batch: (max exit - min entry) / calls, rewriting the inputs included. */
int measure(Operation operation, size_t bytes, Mode mode, const Plan* plan, Data* data, StartLine* line, Point* point);

/* Sorts values; returns their median and 10th percentile. */
Times summarise(double* values, unsigned count);

#endif
