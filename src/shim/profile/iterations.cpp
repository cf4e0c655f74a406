#include "shim/profile/iterations.hpp"

#include <mutex>

#include "base/clock.hpp"
#include "shim/profile/profile.hpp"
#include "shim/profile/queues.hpp"

namespace stretto::shim::profile {

constinit uint64_t iteration_calls = 0;
constinit std::atomic<uint64_t> next_look{0};

namespace {

constexpr uint64_t look_every_ns = 1000000;
uint64_t look_every = 1;  // ticks
std::atomic<uint32_t> iterations_begun{0};

uint64_t ticks_of(uint64_t ns) {
  const trace::TraceHeader* header = trace::trace_header();
  const uint64_t passed = now_ns() - header->start_ns;
  const uint64_t counted = ticks() - header->start_ticks;
  return passed ? uint64_t(double(ns) * double(counted) / double(passed)) : ns;
}

}  // namespace

void prepare_iterations(const Settings& settings) {
  iteration_calls = settings.iteration_calls;
  look_every = ticks_of(look_every_ns);
  next_look.store(ticks(), std::memory_order_relaxed);
}

void iteration_begins(uint64_t number) {
  trace::mark(3, uint32_t(number));
}

void look(uint64_t now) {
  static std::mutex mutex;
  if (!mutex.try_lock()) return;
  next_look.store(now + look_every, std::memory_order_relaxed);
  trace::calibrate_trace();
  sample_queues();
  mutex.unlock();
}

void control(int level) {
  if (!watching) return;
  switch (level) {
    case 0:
    case 1:
      return trace::switch_recording(level == 1);
    case 2:
      return trace::reset_sums();
    case 3:
      return iteration_begins(iterations_begun.fetch_add(1, std::memory_order_relaxed));
    default:
      return;
  }
}

}  // namespace stretto::shim::profile
