#include "bench/ticks.hpp"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

namespace stretto::bench {

double ns_per_tick = 0;

namespace {

#if defined(__x86_64__)
bool kernel_trusts_tsc() {
  char name[32] = "";
  FILE* file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
  if (file == nullptr) return false;
  const bool known = fgets(name, sizeof name, file) != nullptr && strncmp(name, "tsc", 3) == 0;
  fclose(file);
  return known;
}

double measure_rate() {
  const ClockPair begin = read_both(16);
  while (now_ns() - begin.ns < 20'000'000) {
  }
  const ClockPair end = read_both(16);
  return double(end.ns - begin.ns) / double(end.ticks - begin.ticks);
}
#endif

}  // namespace

// Sleeping gives the core to ranks that are there already; the kernel is asked to wake precisely, and for this sleep alone.
void sleep_until(uint64_t tick) {
  constexpr double woken_early_ns = 15'000;
  const uint64_t now = now_ticks();
  const double ns = tick > now ? to_ns(tick - now) - woken_early_ns : 0;
  if (ns <= 0) return;
  const timespec span{time_t(ns / 1e9), long(uint64_t(ns) % 1'000'000'000)};
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
  prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);  // 0: the usual
}

const char* open_ticks([[maybe_unused]] bool one_node) {
#if defined(__x86_64__)
  if (one_node && kernel_trusts_tsc()) return ns_per_tick = measure_rate(), "TSC";
#endif
  return "CLOCK_MONOTONIC";
}

}  // namespace stretto::bench
