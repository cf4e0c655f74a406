// The benchmark's clock: the cycle counter where the kernel trusts it, else CLOCK_MONOTONIC. One node's ranks share either.
#pragma once
#include "base/clock.hpp"

namespace stretto::bench {

extern double ns_per_tick;  // 0 before open_ticks(), and where ticks are nanoseconds

// Finds out which clock it is, and how fast; returns its name. Takes 20 ms. `one_node`: else ticks are nanoseconds, as counters
// of different machines do not go alike.
const char* open_ticks(bool one_node);

inline uint64_t now_ticks() {
#if defined(__x86_64__)
  unsigned ignored;
  if (ns_per_tick > 0) return __builtin_ia32_rdtscp(&ignored);
#endif
  return now_ns();
}

inline double to_ns(uint64_t span) {
  return ns_per_tick > 0 ? double(span) * ns_per_tick : double(span);
}

// Sleeps until a little before a tick, which gives the core to others.
void sleep_until(uint64_t tick);

inline uint64_t from_ns(double ns) {
  return uint64_t(ns_per_tick > 0 ? ns / ns_per_tick : ns);
}

}  // namespace stretto::bench
