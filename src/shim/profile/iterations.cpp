#include "shim/profile/iterations.hpp"

#include <dlfcn.h>

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

// To Stretto's library for NCCL, where that is preloaded too: `what` is as in trace::MarkEntry.
void tell_nccl(uint32_t what, uint32_t number) {
  using Control = void (*)(uint32_t, uint32_t);
  static const auto nccl_control = reinterpret_cast<Control>(dlsym(RTLD_DEFAULT, "stretto_nccl_control"));
  if (nccl_control) nccl_control(what, number);
}

}  // namespace

void prepare_iterations(const Settings& settings) {
  iteration_calls = settings.iteration_calls;
  look_every = ticks_of(look_every_ns);
  next_look.store(ticks(), std::memory_order_relaxed);
}

void iteration_begins(uint64_t number) {
  trace::mark(3, uint32_t(number));
  tell_nccl(3, uint32_t(number));
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
      trace::switch_recording(level == 1);
      return tell_nccl(uint32_t(level), 0);
    case 2:
      trace::reset_sums();
      return tell_nccl(2, 0);
    case 3:
      return iteration_begins(iterations_begun.fetch_add(1, std::memory_order_relaxed));
    default:
      return;
  }
}

}  // namespace stretto::shim::profile
