#include "collective/waiter.hpp"

#include <bit>

#include "base/clock.hpp"
#include "platform/futex.hpp"
#include "trace/stopwatch.hpp"

namespace stretto::collective {
namespace {

constexpr uint64_t awake_part = 25;         // one in so many parts of a nap may go to MPI's progress
constexpr uint64_t short_nap_ns = 100'000;  // where other signals count as well
constexpr uint32_t first_offer = 64;        // looks, before the CPU is offered to a rank that may stand on it too, unbound
constexpr uint64_t early_ns = 100'000;      // a wait of so long is worth a system call of who ends it

// The half of the number that the futex compares.
const std::atomic<uint32_t>* low_half(const Signal& signal) {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<const std::atomic<uint32_t>*>(&signal.value);
}

}  // namespace

Status Waiter::wait_long(const Wait& wait) {
  if (suspension_) return wait_suspended(wait);
  trace::takes_long();
  for (uint32_t i = 1; i <= policy_.spins; ++i) {
    if (wait.is_over()) return Status::good();
    STRETTO_TRY(attend(i, while_spinning, wait));
    if (i >= first_offer && std::has_single_bit(i) && !keeps_cpu()) offer();
    cpu_relax();
  }
  return offer_then_sleep(wait);
}

Status Waiter::offer_then_sleep(const Wait& wait) {
  constexpr uint64_t brief_ns = 5000;  // longer than a yield to ranks that but look and yield in their turn
  const bool drives = must_drive();
  const uint64_t began = policy_.patience_ns > 0 ? now_ns() : 0;
  const Crowd* const crowd = drives ? nullptr : policy_.crowd;
  is_contended_ = crowd != nullptr && crowd->contention->is_known(began);
  Offers offers(crowd, began);
  if (is_contended_) return offers.end_asleep(), sleep(wait);
  uint64_t seen = began;
  bool stays = keeps_cpu() && !drives;
  Periods periods = while_yielding;
  if (drives) periods.progress = 1;
  mates.tell(began);
  for (uint32_t i = 1; policy_.patience_ns > 0 || drives; ++i) {
    if (wait.is_over()) return offers.end(), Status::good();
    // MPI may yield as well, and most waits are over after one.
    if (!drives || i > 1) STRETTO_TRY(attend(i, periods, wait));
    if (i % periods.progress == 0 && !drives) {
      const uint64_t now = now_ns();
      // Where a yield takes so long as others work, MPI's messages would hardly get on.
      if (now - seen > brief_ns * periods.progress) periods.progress = 1;
      seen = now;
      if (stays && now - began > WaitPolicy::usual_stay_ns) stays_until_ = 0;
      stays = keeps_cpu();
      if (now - began > early_ns && may_sleep_early()) {
        const Status slept = sleep(wait);
        policy_.early_sleepers->fetch_sub(1, std::memory_order_relaxed);
        return slept;
      }
      if (now - began > policy_.patience_ns) break;
    }
    stays ? rest() : offer();
    if (offers.add()) break;
  }
  offers.end_asleep();
  return sleep(wait);
}

bool Waiter::keeps_cpu() const {
  return has_own_cpu() && stays_until_ > 0 && (stays_until_ == always || now_ns() < stays_until_);
}

void Waiter::offer() {
  constexpr uint64_t long_ns = 100'000'000;
  if (!has_own_cpu()) return platform::yield();
  const uint64_t began = now_ns();
  platform::yield();
  const uint64_t now = now_ns();
  if (now - began > WaitPolicy::turn_ns) stays_until_ = policy_.own_cpus ? always : now + long_ns;
}

// Whether this rank has been counted as one that sleeps early.
bool Waiter::may_sleep_early() const {
  std::atomic<int32_t>* sleepers = policy_.early_sleepers;
  if (sleepers == nullptr || sleepers->load(std::memory_order_relaxed) >= policy_.surplus) return false;
  if (sleepers->fetch_add(1, std::memory_order_relaxed) < policy_.surplus) return true;
  sleepers->fetch_sub(1, std::memory_order_relaxed);
  return false;
}

Status Waiter::sleep(const Wait& wait) {
  const uint64_t longest_ns = wait.ready ? short_nap_ns : nap_ns;
  for (uint32_t naps = 1; !wait.is_over(); ++naps) {
    nap(wait.signal, wait.target, longest_ns);
    if (wait.is_over()) break;
    const uint64_t woke = now_ns();
    STRETTO_TRY(attend(naps, while_sleeping, wait));
    progress_more(wait, woke + longest_ns / awake_part);
  }
  return Status::good();
}

// A message of MPI's may go in many pieces, one at each round of progress; a round may also take microseconds.
void Waiter::progress_more(const Wait& wait, uint64_t until_ns) {
  constexpr uint32_t most_rounds = 15;
  if (!hooks_.progress) return;
  for (uint32_t round = 0; round < most_rounds && !wait.is_over() && now_ns() < until_ns; ++round)
    hooks_.progress(hooks_.context);
}

// Whoever resumes it drives MPI.
Status Waiter::wait_suspended(const Wait& wait) {
  while (!wait.is_over()) {
    suspension_->suspend(wait);
    if (wait.is_over()) break;
    if (hooks_.alive && !hooks_.alive(hooks_.context, wait.writer) && !wait.has_signal())
      return peer_lost("a rank died", wait.writer);
  }
  return Status::good();
}

// A sleeper is counted before it looks a last time, and a fenced announcer looks at the count after its store, both sequentially
// consistent: one of the two sees the other, so no wake-up is lost. Naps are bounded all the same.
void Waiter::nap(Signal& signal, uint64_t target, uint64_t longest_ns) {
  signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
  uint64_t seen = signal.value.load(std::memory_order_seq_cst);
  if (!reached(seen, target)) platform::futex_wait(low_half(signal), uint32_t(seen), longest_ns);
  signal.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

// What else must be seen to now and then: MPI's progress, and whether the awaited rank lives.
Status Waiter::attend(uint32_t count, const Periods& periods, const Wait& wait) {
  if (hooks_.progress && count % periods.progress == 0) hooks_.progress(hooks_.context);
  if (!hooks_.alive || count % periods.life != 0 || hooks_.alive(hooks_.context, wait.writer)) return Status::good();
  // It may have announced and left between our last look and its death.
  return wait.has_signal() ? Status::good() : peer_lost("a rank died", wait.writer);
}

void Waiter::rest() const {
  if (policy_.spins == 0) return platform::yield();
  for (int i = 0; i < 16; ++i) cpu_relax();
}

void Waiter::wake(Signal& signal) {
  platform::futex_wake_all(low_half(signal));
}

}  // namespace stretto::collective
