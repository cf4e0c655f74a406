#include "collective/waiter.hpp"

#include "base/clock.hpp"
#include "platform/futex.hpp"
#include "trace/stopwatch.hpp"

namespace stretto::collective {
namespace {
constexpr uint64_t nap_ns = 500'000;  // the longest sleep between two rounds of MPI progress
constexpr uint32_t naps_between_life_checks = 200;
constexpr uint32_t yields_between_progress = 16;
}  // namespace

Status Waiter::wait_long(Signal& signal, uint32_t target, int writer) {
  trace::takes_long();
  for (uint32_t i = 0; i < policy_.spins; ++i) {
    if (reached(signal.value.load(std::memory_order_acquire), target)) return Status::good();
    cpu_relax();
  }
  for (uint32_t i = 0; i < policy_.yields; ++i) {
    if (reached(signal.value.load(std::memory_order_acquire), target)) return Status::good();
    if (hooks_.progress && i % yields_between_progress == yields_between_progress - 1) hooks_.progress(hooks_.context);
    platform::yield();
  }
  return sleep(signal, target, writer);
}

// A sleeper is counted before it looks a last time, and a fenced announcer looks at the count after its store, both sequentially
// consistent: one of the two sees the other, so no wake-up is lost. Naps are bounded all the same.
Status Waiter::sleep(Signal& signal, uint32_t target, int writer) {
  for (uint32_t naps = 1;; ++naps) {
    signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
    uint32_t seen = signal.value.load(std::memory_order_seq_cst);
    if (!reached(seen, target)) platform::futex_wait(&signal.value, seen, nap_ns);
    signal.sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (reached(signal.value.load(std::memory_order_acquire), target)) return Status::good();
    if (hooks_.progress) hooks_.progress(hooks_.context);
    if (hooks_.alive && naps % naps_between_life_checks == 0 && !hooks_.alive(hooks_.context, writer)) {
      // It may have announced and left between our last look and its death.
      if (reached(signal.value.load(std::memory_order_acquire), target)) return Status::good();
      return peer_lost("a rank died", writer);
    }
  }
}

void Waiter::wake(Signal& signal) {
  platform::futex_wake_all(&signal.value);
}

}  // namespace stretto::collective
