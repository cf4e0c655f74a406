// What the benchmark writes: one JSON line for the setup, one for each point (docs/benchmarking.md). By rank 0.
#pragma once
#include <stdio.h>

#include "bench/measure.hpp"
#include "platform/cpus.hpp"

namespace stretto::bench {

struct Setup {
  const char* library;  // of MPI
  int ranks, nodes;
  int cores;             // that the ranks together may use
  bool crowded, pinned;  // ranks outnumber cores; each was given a core by this program
  const char* clock;
  Preload preload;
  const platform::CpuSet* cpus;  // per rank: those it may run on
};
void write_setup(FILE* json, const Setup& setup);

struct Described {
  const Collective* collective;
  size_t bytes;
  int ranks;
  Mode mode;
  const char* shape;  // null: no arrival pattern
  double spread;      // multiples of `unit_us`
  double unit_us;     // what spreads are multiples of
  double floor_us;    // what the machine needs at least when all arrive together
  double bound_us;    // the same after the last arrival; 0 without a pattern
};
void write_point(FILE* json, const Described& described, const Plan& plan, const Point& point);
void write_skipped(FILE* json, const Collective& collective, size_t bytes, const char* why);

}  // namespace stretto::bench
