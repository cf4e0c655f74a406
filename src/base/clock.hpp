// Two clocks: ticks() for the hot path (cycle counter), now_ns() for everything else (CLOCK_MONOTONIC).
#pragma once
#include <time.h>

#include <cstdint>

namespace stretto {

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// CLOCK_MONOTONIC when the kernel last looked at it, some milliseconds ago at most.
inline uint64_t coarse_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

inline uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return now_ns();
#endif
}

// Both clocks at one moment: of several readings that with the least time around it, so that no interruption lies in it.
struct ClockPair {
  uint64_t ticks, ns;
  uint64_t apart;  // ticks in which it was read
};
inline ClockPair read_both(int readings = 3) {
  ClockPair best{0, 0, UINT64_MAX};
  for (int i = 0; i < readings; ++i) {
    const uint64_t before = ticks(), ns = now_ns(), after = ticks();
    if (after - before < best.apart) best = {before + (after - before) / 2, ns, after - before};
  }
  return best;
}

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace stretto
