// Whether others than ranks keep the CPUs busy that ranks share: data loaders of the program, other jobs.
//
// Then each yield costs a turn of theirs, milliseconds, but whoever is woken runs within microseconds: so all ranks sleep
// instead. All, as one that yields on would keep its CPU from those that compute. Ranks at work cost turns too; so it is by the
// CPU time that ranks have used that others are found.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "platform/cpu_time.hpp"

namespace stretto::collective {

// What the ranks that share CPUs have found, in memory that they share.
class Contention {
 public:
  bool is_suspected() const { return sleep_ns_.load(std::memory_order_relaxed) > 0; }
  // Whether to sleep. False now and then, so that yields are tried again.
  bool is_known(uint64_t now) const { return now < sleep_until_.load(std::memory_order_relaxed); }

  // A yield has taken a turn, of whom is not known.
  void suspect() {
    uint64_t none = 0;
    sleep_ns_.compare_exchange_strong(none, suspicion_ns, std::memory_order_relaxed);
  }
  // After the yields of a wait: whether they took turns of others.
  void note(bool took_turns, uint64_t now) {
    constexpr uint64_t longest_ns = 60'000'000;
    const uint64_t before = sleep_ns_.load(std::memory_order_relaxed);
    if (!took_turns && before == 0) return;
    const uint64_t less = before > suspicion_ns / 8 ? before / 2 : 0;
    const uint64_t next = took_turns ? std::min(4 * before + suspicion_ns, longest_ns) : less;
    sleep_ns_.store(next, std::memory_order_relaxed);
    if (took_turns) sleep_until_.store(now + next, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t suspicion_ns = 100'000;

  std::atomic<uint64_t> sleep_until_{0}, sleep_ns_{0};
};

// The ranks that share CPUs with this one, itself too.
struct Crowd {
  Contention* contention = nullptr;
  platform::CpuTimes ranks;
  int cpus = 1;
};

// The yields of one wait.
class Offers {
 public:
  static constexpr uint64_t turn_ns = 1'000'000;  // a yield of so long has cost a turn

  // crowd: null: nothing is noted.
  Offers(const Crowd* crowd, uint64_t began)
      : crowd_(crowd),
        began_(began),
        last_(began),
        used_(crowd && crowd->contention->is_suspected() ? crowd->ranks.sum_ns() : 0) {}

  // After each of them. True: others have the CPUs, and the wait had better go on asleep.
  bool add() {
    if (crowd_ == nullptr) return false;
    const uint64_t now = now_ns();
    const bool took_turn = now - last_ > turn_ns;
    any_ = true;
    last_ = now;
    took_turn_ = took_turn_ || took_turn;
    others_ = others_ || (took_turn && others_ran());
    return others_;
  }

  bool took_turn() const { return took_turn_; }

  void end() const {
    if (!any_) return;
    if (took_turn_ && used_ == 0) return crowd_->contention->suspect();
    // A long wait without a lost turn may be for a rank that has lost its own.
    if (others_ || took_turn_ || last_ - began_ < turn_ns) crowd_->contention->note(others_, last_);
  }

 private:
  // Whether others than ranks have had half of a CPU or more since the wait began.
  bool others_ran() const {
    const uint64_t used = used_ > 0 ? crowd_->ranks.sum_ns() : 0;
    if (used <= used_) return false;
    const uint64_t passed = last_ - began_;
    return used - used_ + passed / 2 < passed * uint64_t(crowd_->cpus);
  }

  const Crowd* const crowd_;
  const uint64_t began_;
  uint64_t last_;
  const uint64_t used_;  // CPU time of the ranks when the wait began; 0: not known
  bool any_ = false, took_turn_ = false, others_ = false;
};

}  // namespace stretto::collective
