// Whether others than ranks keep the CPUs busy that ranks share: data loaders of the program, other jobs.
//
// Then each yield costs a turn of theirs, milliseconds, but whoever is woken runs within microseconds: so all ranks sleep
// instead. All, as one that yields on would keep its CPU from those that compute.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace stretto::collective {

// What the ranks that share CPUs have found, in memory that they share.
class Contention {
 public:
  static constexpr uint64_t turn_ns = 1'000'000;  // a yield of so long has cost a turn

  bool is_likely() const { return sleep_ns_.load(std::memory_order_relaxed) > suspicion_ns; }
  // Whether to sleep. False now and then, so that yields are tried again.
  bool is_known(uint64_t now) const { return now < sleep_until_.load(std::memory_order_relaxed); }

  // After some yields: whether one of them took a turn. Ranks that compute cause that too, though seldom again and again.
  void note(bool took_turn, uint64_t now) {
    constexpr uint64_t longest_ns = 60'000'000;
    const uint64_t before = sleep_ns_.load(std::memory_order_relaxed);
    if (!took_turn && before == 0) return;
    const uint64_t less = before > suspicion_ns / 8 ? before / 2 : 0;
    const uint64_t next = took_turn ? std::min(4 * before + suspicion_ns, longest_ns) : less;
    sleep_ns_.store(next, std::memory_order_relaxed);
    if (took_turn && before > 0) sleep_until_.store(now + next, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t suspicion_ns = 100'000;

  std::atomic<uint64_t> sleep_until_{0}, sleep_ns_{0};
};

// The yields of one wait.
class Offers {
 public:
  // contention: null: nothing is noted. A wait that does not follow the last one closely proves nothing by turns that it loses,
  // as ranks may compute.
  Offers(Contention* contention, uint64_t began, uint64_t last_ended)
      : contention_(contention), last_(began), follows_(began - last_ended < close_ns) {}

  // After each of them. True: the wait had better go on asleep.
  bool add() {
    if (contention_ == nullptr) return false;
    const uint64_t now = now_ns();
    took_turn_ = took_turn_ || now - last_ > Contention::turn_ns;
    any_ = true;
    last_ = now;
    return took_turn_ && contention_->is_likely();
  }

  // Returns when the last one was over.
  uint64_t end() {
    if (any_ && (follows_ || !took_turn_)) contention_->note(took_turn_, last_);
    return last_;
  }

 private:
  static constexpr uint64_t close_ns = 200'000;

  Contention* const contention_;
  uint64_t last_;
  const bool follows_;
  bool any_ = false, took_turn_ = false;
};

}  // namespace stretto::collective
