// Waiting as a policy: spin, then yield, then sleep; meanwhile drive MPI's progress and notice the dead.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collective/board.hpp"
#include "collective/contention.hpp"
#include "collective/mates.hpp"

namespace stretto::collective {

// a >= b, where b may be a little below zero.
inline bool reached(uint64_t a, uint64_t b) {
  return int64_t(a - b) >= 0;
}

struct WaitPolicy {
  uint32_t looks = 60;    // at the line, with pauses, before the wait counts as one: some hundred nanoseconds
  uint32_t spins = 2000;  // further looks before anything else
  // So long it then offers the CPU to others again and again; after that the rank sleeps. Ranks are seldom later, and to wake one
  // whose core has gone idle takes 30 to 40 us.
  static constexpr uint64_t usual_patience_ns = 10'000'000;
  uint64_t patience_ns = usual_patience_ns;
  // A yield may cost a turn of whatever else runs there, 3 ms and more. Where that is no rank it is worth so much only when the
  // wait has been long: a rank then stays for so long first. So it does after a yield that took a turn, and where no rank can
  // stand on its CPUs from the start; and no longer once it has stayed in vain, until the next such yield. (Others that stay make
  // yields long too, but not so long.)
  static constexpr uint64_t usual_stay_ns = 1'000'000, turn_ns = 2'000'000;
  bool own_cpus = false;
  const Crowd* crowd = nullptr;  // null: yields are always tried
  // Where yields do not pass a shared CPU on, a rank sleeps early, if no more than `surplus` do: so the CPUs stay awake.
  std::atomic<int32_t>* early_sleepers = nullptr;
  int32_t surplus = 0;
  bool fenced = true;  // every announcement sees every sleeper; else one that is just falling asleep may nap to its end
  static WaitPolicy dedicated(bool own_cpus = false) { return {.own_cpus = own_cpus, .fenced = false}; }
  // A rank that looks on keeps its core from the one that it waits for; one that offers it hardly does.
  static WaitPolicy oversubscribed(const Crowd* crowd = nullptr) { return {.looks = 4, .spins = 0, .crowd = crowd}; }
  // So it does where they are of different scheduling groups (platform/scheduling.hpp).
  static WaitPolicy in_turns(std::atomic<int32_t>& early_sleepers, int surplus) {
    return {.looks = 4, .spins = 0, .early_sleepers = &early_sleepers, .surplus = surplus};
  }
};

// What waiting may call on. Both may be null.
struct WaitHooks {
  void (*progress)(void* context) = nullptr;         // drives the MPI library
  bool (*alive)(void* context, int rank) = nullptr;  // whether a rank of the team still lives, or all of them (any_rank)
  void* context = nullptr;
  // Windows of one-sided communication. While there is any, other ranks may be waiting for what MPI's progress does here.
  const std::atomic<int32_t>* windows = nullptr;
};

inline constexpr int any_rank = -1;  // as the awaited writer: the death of any rank of the team ends the wait

// What is waited for: that `signal` reaches `target`, which rank `writer` sees to; or where ready() is given, that: the signal
// brings it about, and so may others.
struct Wait {
  Signal& signal;
  uint64_t target;
  int writer;
  bool (*ready)(const void* context) = nullptr;
  const void* context = nullptr;

  bool has_signal() const { return reached(signal.value.load(std::memory_order_acquire), target); }
  bool is_over() const { return ready ? ready(context) : has_signal(); }
};

// Whoever would wait leaves its thread to others instead.
class Suspension {
 public:
  // Returns when the wait is over, or earlier to look around.
  virtual void suspend(const Wait& wait) = 0;
  // The same for what gives no signal: returns once done() says true, which is asked now and then, by whichever thread.
  virtual void until_done(bool (*done)(void* context), void* context) = 0;

 protected:
  ~Suspension() = default;
};

class Waiter {
 public:
  Waiter() = default;
  Waiter(const WaitPolicy& policy, const WaitHooks& hooks)
      : policy_(policy), hooks_(hooks), stays_until_(policy.own_cpus ? always : 0) {}

  Mates mates;

  // Returns once signal.value has reached `target`; what its writer stored before is then visible. peer_lost, detail = rank,
  // when its writer, rank `writer`, has died.
  Status until(Signal& signal, uint64_t target, int writer) {
    for (uint32_t i = 0; i < policy_.looks; ++i) {
      if (reached(signal.value.load(std::memory_order_acquire), target)) return Status::good();
      cpu_relax();
    }
    return wait_long({signal, target, writer});
  }

  // Returns once ready() is true, which `signal` reaching `target` brings about; so may others, which are noticed a tenth of
  // a millisecond late when this rank sleeps.
  template <class Ready>
  Status until_any(const Ready& ready, Signal& signal, uint64_t target, int writer) {
    for (uint32_t i = 0; i < policy_.looks; ++i) {
      if (ready()) return Status::good();
      cpu_relax();
    }
    const auto ask = [](const void* context) { return (*static_cast<const Ready*>(context))(); };
    return wait_long({signal, target, writer, ask, &ready});
  }

  // peer_lost where rank `rank` is known to have died: to be asked before anything is done to a process that may have its number
  // since. Asks the system, which takes microseconds.
  Status expect_alive(int rank) const {
    const bool alive = hooks_.alive == nullptr || hooks_.alive(hooks_.context, rank);
    return alive ? Status::good() : peer_lost("a rank died", rank);
  }

  // Whether this rank has its CPU to itself.
  bool has_own_cpu() const { return policy_.spins > 0; }

  // A short look out for what is likely to come at once: whether it has come. Where ranks share cores the CPU is offered to
  // others a few times, as who is to come may be waiting for it.
  bool glance(const Signal& signal, uint64_t target, uint32_t looks) const {
    const auto has_come = [&] { return reached(signal.value.load(std::memory_order_acquire), target); };
    if (policy_.spins == 0 && !suspension_ && !is_contended_) return offer_until(has_come, looks);
    for (uint32_t i = 0; i < looks && policy_.spins > 0; ++i) {
      if (has_come()) return true;
      cpu_relax();
    }
    return has_come();
  }

  // Stays a moment, for about as long as a peer that is at work takes for its next step: whether ready() is true then.
  static constexpr uint64_t usual_moment_ns = 40'000;
  template <class Ready>
  bool linger(const Ready& ready, uint64_t moment_ns = usual_moment_ns) const {
    if (suspension_ || is_contended_) return ready();
    for (const uint64_t begin = now_ns(); !ready();) {
      if (now_ns() - begin > moment_ns) return false;
      rest();
    }
    return true;
  }

  // Stays until ready() is true, which a peer that lives soon brings about, also where the call has ended for others.
  template <class Ready>
  void stay(const Ready& ready) const {
    constexpr uint64_t longest_ns = 400'000'000;
    for (const uint64_t begin = now_ns(); !ready() && now_ns() - begin < longest_ns;) rest();
  }

  // Advances a number that several ranks advance.
  void add(Signal& signal, uint64_t more) const {
    signal.value.fetch_add(more, std::memory_order_seq_cst);
    notify(signal);
  }

  // Wakes who sleeps on a signal that has been stored to, sequentially consistently.
  void notify(Signal& signal) const {
    if (signal.sleepers.load(std::memory_order_seq_cst) != 0) wake(signal);
  }

  // From now on what runs is an operation beside others, and every long wait suspends; null: it waits in its thread even so.
  void begin_beside(Suspension* suspension) {
    suspension_ = suspension;
    is_beside_ = true;
  }
  void end_beside() {
    suspension_ = nullptr;
    is_beside_ = false;
  }
  bool is_beside() const { return is_beside_; }

  // Sleeps until the signal has changed from below `target`, or for so long.
  static constexpr uint64_t nap_ns = 500'000;  // between two rounds of MPI progress
  static void nap(Signal& signal, uint64_t target, uint64_t longest_ns = nap_ns);

  // Stores `value` with release order and wakes whoever sleeps on the signal. Unfenced, the store does not wait for the line to
  // arrive from its readers, and the look at the peers' lines that follows overlaps with it.
  void announce(Signal& signal, uint64_t value) const {
    bool sleepers;
    if (policy_.fenced) {
      signal.value.store(value, std::memory_order_seq_cst);
      sleepers = signal.sleepers.load(std::memory_order_seq_cst) != 0;
    } else {
      signal.value.store(value, std::memory_order_release);
      sleepers = signal.sleepers.load(std::memory_order_relaxed) != 0;
    }
    if (sleepers) wake(signal);
  }

 private:
  // How many looks, yields or naps lie between two calls of a hook.
  struct Periods {
    uint32_t progress, life;
  };
  static constexpr Periods while_spinning{512, 1 << 22};
  static constexpr Periods while_yielding{16, 1 << 16};
  static constexpr Periods while_sleeping{1, 200};

  void rest() const;  // between two looks
  template <class Ready>
  bool offer_until(const Ready& ready, uint32_t times) const {
    constexpr uint32_t most_offers = 4;
    for (uint32_t i = 0; i < times && i < most_offers; ++i) {
      if (ready()) return true;
      rest();
    }
    return ready();
  }
  static void wake(Signal& signal);
  Status wait_long(const Wait& wait);
  Status offer_then_sleep(const Wait& wait);
  bool keeps_cpu() const;  // see WaitPolicy::usual_stay_ns
  void offer();
  bool may_sleep_early() const;
  bool must_drive() const { return hooks_.windows != nullptr && hooks_.windows->load(std::memory_order_relaxed) > 0; }
  Status sleep(const Wait& wait);
  void progress_more(const Wait& wait, uint64_t until_ns);
  Status wait_suspended(const Wait& wait);
  Status attend(uint32_t count, const Periods& periods, const Wait& wait);

  WaitPolicy policy_;
  WaitHooks hooks_;
  Suspension* suspension_ = nullptr;
  bool is_beside_ = false;
  static constexpr uint64_t always = UINT64_MAX;
  uint64_t stays_until_ = 0;
  bool is_contended_ = false;  // as the last long wait found it
};

}  // namespace stretto::collective
