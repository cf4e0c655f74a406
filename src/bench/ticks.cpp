#include "bench/ticks.hpp"

#include <stdio.h>
#include <string.h>

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
  unsigned ignored;
  const uint64_t begin_ns = now_ns(), begin = __builtin_ia32_rdtscp(&ignored);
  uint64_t end_ns;
  do end_ns = now_ns();
  while (end_ns - begin_ns < 20'000'000);
  return double(end_ns - begin_ns) / double(__builtin_ia32_rdtscp(&ignored) - begin);
}
#endif

}  // namespace

const char* open_ticks([[maybe_unused]] bool one_node) {
#if defined(__x86_64__)
  if (one_node && kernel_trusts_tsc()) return ns_per_tick = measure_rate(), "TSC";
#endif
  return "CLOCK_MONOTONIC";
}

}  // namespace stretto::bench
