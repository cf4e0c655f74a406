#include "collective/waiter.hpp"

#include <bit>

#include "base/clock.hpp"
#include "platform/futex.hpp"
#include "trace/stopwatch.hpp"

namespace stretto::collective {
namespace {

constexpr uint64_t nap_ns = 500'000;  // the longest sleep between two rounds of MPI progress

// The half of the number that the futex compares.
const std::atomic<uint32_t>* low_half(const Signal& signal) {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<const std::atomic<uint32_t>*>(&signal.value);
}

bool has_reached(const Signal& signal, uint64_t target) {
  return reached(signal.value.load(std::memory_order_acquire), target);
}

}  // namespace

Status Waiter::wait_long(Signal& signal, uint64_t target, int writer) {
  if (suspension_) return wait_suspended(signal, target, writer);
  trace::takes_long();
  for (uint32_t i = 1; i <= policy_.spins; ++i) {
    if (has_reached(signal, target)) return Status::good();
    STRETTO_TRY(attend(i, while_spinning, signal, target, writer));
    cpu_relax();
  }
  for (uint32_t i = 1; i <= policy_.yields; ++i) {
    if (has_reached(signal, target)) return Status::good();
    STRETTO_TRY(attend(i, while_yielding, signal, target, writer));
    platform::yield();
  }
  return sleep(signal, target, writer);
}

// As wait_long(), with a condition that is not this signal's alone.
Status Waiter::wait_any(bool (*ready)(const void*), const void* context, const Awaited& awaited) {
  auto& [signal, target, writer] = awaited;
  if (suspension_) return wait_suspended(signal, target, writer);
  trace::takes_long();
  for (uint32_t i = 1; i <= policy_.spins; ++i) {
    if (ready(context)) return Status::good();
    STRETTO_TRY(attend(i, while_spinning, signal, target, writer));
    cpu_relax();
  }
  for (uint32_t i = 1; i <= policy_.yields; ++i) {
    if (ready(context)) return Status::good();
    STRETTO_TRY(attend(i, while_yielding, signal, target, writer));
    platform::yield();
  }
  for (uint32_t naps = 1; !ready(context); ++naps) {
    nap(signal, target);
    if (ready(context)) break;
    STRETTO_TRY(attend(naps, while_sleeping, signal, target, writer));
  }
  return Status::good();
}

// Whoever resumes it drives MPI.
Status Waiter::wait_suspended(Signal& signal, uint64_t target, int writer) {
  while (!has_reached(signal, target)) {
    suspension_->suspend(signal, target);
    if (has_reached(signal, target)) break;
    if (hooks_.alive && !hooks_.alive(hooks_.context, writer) && !has_reached(signal, target))
      return peer_lost("a rank died", writer);
  }
  return Status::good();
}

// A sleeper is counted before it looks a last time, and a fenced announcer looks at the count after its store, both sequentially
// consistent: one of the two sees the other, so no wake-up is lost. Naps are bounded all the same.
void Waiter::nap(Signal& signal, uint64_t target) {
  signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
  uint64_t seen = signal.value.load(std::memory_order_seq_cst);
  if (!reached(seen, target)) platform::futex_wait(low_half(signal), uint32_t(seen), nap_ns);
  signal.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

Status Waiter::sleep(Signal& signal, uint64_t target, int writer) {
  for (uint32_t naps = 1;; ++naps) {
    nap(signal, target);
    if (has_reached(signal, target)) return Status::good();
    STRETTO_TRY(attend(naps, while_sleeping, signal, target, writer));
  }
}

// What else must be seen to now and then: MPI's progress, and whether the awaited rank lives.
Status Waiter::attend(uint32_t count, const Periods& periods, Signal& signal, uint64_t target, int writer) {
  if (hooks_.progress && count % periods.progress == 0) hooks_.progress(hooks_.context);
  if (!hooks_.alive || count % periods.life != 0 || hooks_.alive(hooks_.context, writer)) return Status::good();
  // It may have announced and left between our last look and its death.
  return has_reached(signal, target) ? Status::good() : peer_lost("a rank died", writer);
}

void Waiter::wake(Signal& signal) {
  platform::futex_wake_all(low_half(signal));
}

}  // namespace stretto::collective
