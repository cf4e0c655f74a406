/* One clock for all ranks of a node, cheap enough to stand around a call of 100 ns: the cycle counter where the kernel
 * itself trusts it across cores, CLOCK_MONOTONIC elsewhere. */
#ifndef BENCH_TICKS_H
#define BENCH_TICKS_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds per tick of the counter; 0 while CLOCK_MONOTONIC is in use. Set once by ticks_open. */
extern double ticks_ns;

static inline uint64_t monotonic_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits for the instructions before it, so that what was called has ended when the time is read. */
static inline uint64_t ticks(void) {
#if defined(__x86_64__)
  if (ticks_ns > 0) {
    unsigned aux;
    return __builtin_ia32_rdtscp(&aux);
  }
#endif
  return monotonic_ns();
}

static inline double ticks_to_ns(uint64_t elapsed) {
  return ticks_ns > 0 ? (double)elapsed * ticks_ns : (double)elapsed;
}

/* Chooses the clock and calibrates it (20 ms). Returns its name. All ranks of a node choose alike. */
const char* ticks_open(void);

#endif
