#include "measure.h"

#include <stdlib.h>

#include "ticks.h"

typedef struct {
  uint64_t entry, exit;
} Stamp;

typedef struct {
  Operation operation;
  size_t bytes;
  const Plan* plan;
  Data* data;
  StartLine* line;
  Mode mode;
  unsigned calls;
  unsigned iteration; /* calls made so far: the same on all ranks */
  size_t wrong;       /* on this rank */
} Run;

static int root_of(const Run* run) {
  return run->mode == mode_batch ? (int)(run->iteration % (unsigned)run->data->ranks) : run->plan->root;
}

static void fill(Run* run) {
  operation_fill(run->operation, run->data, run->bytes, root_of(run), run->iteration);
}

static void call(Run* run, int side) {
  operation_call(run->operation, side, run->data, run->bytes, root_of(run));
}

/* Returns 1, without a call, when the start line is halted. */
static int sample(Run* run, int side, Stamp* out) {
  Stamp stamp;
  if (run->mode == mode_balanced) {
    fill(run);
    if (start_line_wait(run->line)) return 1;
    stamp.entry = ticks();
    call(run, side);
    stamp.exit = ticks();
    ++run->iteration;
    /* On shared cores, what a rank does after it has left would take time from those that are still in the call. */
    if (run->plan->oversubscribed) start_line_wait(run->line);
  } else {
    if (start_line_wait(run->line)) return 1;
    stamp.entry = ticks();
    for (unsigned i = 0; i < run->calls; ++i, ++run->iteration) {
      fill(run);
      call(run, side);
    }
    stamp.exit = ticks();
  }
  --run->iteration;
  run->wrong += operation_check_some(run->operation, run->data, run->bytes, root_of(run), run->iteration);
  ++run->iteration;
  *out = stamp;
  return 0;
}

static int is_timed(const Plan* plan, int side) {
  return plan->one_side == sides || plan->one_side == side;
}
static int timed_sides(const Plan* plan) {
  return plan->one_side == sides ? sides : 1;
}

/* One call of each timed side, looked at in full. */
static void check(Run* run) {
  for (int side = 0; side < sides; ++side) {
    if (!is_timed(run->plan, side)) continue;
    operation_poison(run->operation, run->data, run->bytes);
    fill(run);
    call(run, side);
    run->wrong += operation_check_all(run->operation, run->data, run->bytes, root_of(run), run->iteration);
    ++run->iteration;
  }
}

/* Nanoseconds that a pair of samples takes, as the slowest rank sees it, after `warm` pairs that do not count. */
static double pair_ns(Run* run, int warm) {
  double best = 0;
  for (int i = 0; i <= warm + 1; ++i) {
    Stamp ignored;
    uint64_t from = ticks();
    for (int side = 0; side < sides; ++side)
      if (is_timed(run->plan, side)) sample(run, side, &ignored);
    double took = ticks_to_ns(ticks() - from);
    if (i == warm || (i > warm && took < best)) best = took;
  }
  PMPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MAX, run->data->comm);
  return best;
}

/* Calls that do not count, for programs that find out by trial how to do them: up to 100, or a quarter of the budget. */
static void settle(Run* run, double pair) {
  const double calls = run->plan->budget_ms * 1e6 / 4 / pair;
  Stamp ignored;
  for (int i = 0; i < 100 && i < calls; ++i)
    for (int side = 0; side < sides; ++side)
      if (is_timed(run->plan, side)) sample(run, side, &ignored);
}

static unsigned clamp(double value, unsigned low, unsigned high) {
  return value < low ? low : value > high ? high : (unsigned)value;
}

/* Calls per batch: long enough that its ends do not matter (and, oversubscribed, that many turns of the cores are in
 * it), short enough for many batches. */
static unsigned batch_calls(Run* run) {
  const double target_ns = run->plan->oversubscribed ? 4e6 : 2e5;
  run->calls = 8;
  return clamp(target_ns * run->calls * timed_sides(run->plan) / pair_ns(run, 1), run->calls, 2000);
}

static double sample_us(const Stamp* all, unsigned total, int ranks, unsigned k, int from_first) {
  uint64_t first = UINT64_MAX, last = 0, end = 0;
  for (int r = 0; r < ranks; ++r) {
    const Stamp* stamp = &all[(size_t)r * total + k];
    if (stamp->entry < first) first = stamp->entry;
    if (stamp->entry > last) last = stamp->entry;
    if (stamp->exit > end) end = stamp->exit;
  }
  return ticks_to_ns(end - (from_first ? first : last)) / 1000;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

Times summarise(double* values, unsigned count) {
  qsort(values, count, sizeof *values, by_value);
  Times times = {(values[(count - 1) / 2] + values[count / 2]) / 2, values[count / 10]};
  return times;
}

/* On rank 0: stamps of all ranks -> times of a side. stamps[k] belongs to side[k]. */
static Times reduce_side(const Run* run, const Stamp* all, const char* side_of, unsigned total, int side, double* scratch) {
  const int from_first = run->mode == mode_batch || run->plan->oversubscribed;
  unsigned count = 0;
  for (unsigned k = 0; k < total; ++k)
    if (side_of[k] == side) scratch[count++] = sample_us(all, total, run->data->ranks, k, from_first) / run->calls;
  return summarise(scratch, count);
}

static unsigned samples_of(const char* side_of, unsigned total, int side) {
  unsigned count = 0;
  for (unsigned k = 0; k < total; ++k) count += side_of[k] == side;
  return count;
}

/* Fills stamps and side_of; returns how many samples were taken: fewer than `most` when other programs on the machine
 * stretch the point far beyond its budget. */
static unsigned race(Run* run, unsigned most, Stamp* stamps, char* side_of) {
  const int both = timed_sides(run->plan) == sides;
  const uint64_t latest = monotonic_ns() + (uint64_t)(run->plan->budget_ms * 3e6);
  const unsigned least = run->plan->least * (unsigned)timed_sides(run->plan);
  unsigned k = 0;
  for (; k < most; ++k) {
    if (run->data->rank == 0 && k >= least && monotonic_ns() > latest) start_line_halt(run->line);
    side_of[k] = both ? (char)((k ^ (k >> 1)) & 1) : (char)run->plan->one_side; /* a b b a a b b a ... */
    if (sample(run, side_of[k], &stamps[k])) break;
  }
  return k;
}

static int take_samples(Run* run, unsigned samples, Point* point) {
  unsigned total = samples * (unsigned)timed_sides(run->plan);
  const size_t all_ranks = run->data->rank == 0 ? (size_t)run->data->ranks : 0;
  Stamp* stamps = malloc(total * sizeof *stamps);
  Stamp* all = malloc((all_ranks * total + 1) * sizeof *all);
  char* side_of = malloc(total);
  double* scratch = malloc(total * sizeof *scratch);
  int failed = !stamps || !all || !side_of || !scratch;
  PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, run->data->comm);
  if (!failed) {
    total = race(run, total, stamps, side_of);
    const int words = (int)(2 * total);
    PMPI_Gather(stamps, words, MPI_UINT64_T, all, words, MPI_UINT64_T, 0, run->data->comm);
    for (int side = 0; run->data->rank == 0 && side < sides; ++side)
      if (is_timed(run->plan, side)) {
        point->samples = samples_of(side_of, total, side);
        point->side[side] = reduce_side(run, all, side_of, total, side, scratch);
      }
  }
  free(stamps);
  free(all);
  free(side_of);
  free(scratch);
  return failed ? -1 : 0;
}

int measure(Operation operation, size_t bytes, Mode mode, const Plan* plan, Data* data, StartLine* line, Point* point) {
  Run run = {operation, bytes, plan, data, line, mode, 1, 0, 0};
  *point = (Point){0};
  operation_lay_out(operation, data, bytes);
  check(&run);
  if (mode == mode_batch) run.calls = batch_calls(&run);
  point->calls = run.calls;
  settle(&run, pair_ns(&run, 2));
  const unsigned samples = clamp(plan->budget_ms * 1e6 / pair_ns(&run, 2), plan->least, 4000);
  point->hop_ns[0] = start_line_hop_ns(line, data->rank);
  int failed = take_samples(&run, samples, point);
  point->hop_ns[1] = start_line_hop_ns(line, data->rank);
  check(&run);
  unsigned long long wrong = run.wrong;
  PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, data->comm);
  point->wrong = (size_t)wrong;
  return failed;
}
