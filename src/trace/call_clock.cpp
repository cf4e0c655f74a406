#include "trace/call_clock.hpp"

#include <algorithm>

namespace stretto::trace {

constinit Coarse coarse;
__attribute__((tls_model("initial-exec"))) constinit thread_local uint64_t coarse_seen = 0;

namespace {

// Ticks that `read` takes, at best.
template <class Read>
uint64_t cost_of(Read read) {
  constexpr int rounds = 10, readings = 32;
  uint64_t least = UINT64_MAX;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t begin = ticks();
    for (int i = 0; i < readings; ++i) [[maybe_unused]]
      const volatile uint64_t now = read();
    least = std::min(least, ticks() - begin);
  }
  return least;
}

}  // namespace

void prepare_coarse(const ClockPair& start) {
  timespec step;
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &step) != 0 || step.tv_sec != 0 || step.tv_nsec < 500'000) return;
  const ClockPair now = read_both();
  if (now.ns < start.ns + 2'000'000 || now.ticks <= start.ticks) return;
  coarse.two_steps_ns = 2 * uint64_t(step.tv_nsec);
  coarse.two_steps = uint64_t(double(coarse.two_steps_ns) * double(now.ticks - start.ticks) / double(now.ns - start.ns));
  coarse.is_cheap = 3 * cost_of(coarse_ns) < 2 * cost_of(ticks);
}

}  // namespace stretto::trace
