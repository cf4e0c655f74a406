// Whether others than ranks keep the CPUs busy that ranks share: data loaders of the program, other jobs.
//
// Then each yield costs a turn of theirs, milliseconds, but whoever is woken runs within microseconds: so all ranks sleep
// instead. All, as one that yields on would keep its CPU from those that compute. Ranks at work cost turns too; so others are
// found by turns that are lost and that no rank has used.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/cacheline.hpp"
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

// How long a rank has done anything but wait in yields or asleep: in memory that it shares with those whose CPUs it shares. Of
// several threads that wait at once it is a guess.
class Work {
 public:
  void go_on(uint64_t now) { since_.store(now, std::memory_order_relaxed); }
  void pause(uint64_t now) {
    const uint64_t since = since_.load(std::memory_order_relaxed);
    if (since == 0) return;
    done_ns_.store(done_ns_.load(std::memory_order_relaxed) + now - since, std::memory_order_relaxed);
    since_.store(0, std::memory_order_relaxed);
  }
  uint64_t so_far(uint64_t now) const {
    const uint64_t since = since_.load(std::memory_order_relaxed);
    return done_ns_.load(std::memory_order_relaxed) + (since > 0 && since < now ? now - since : 0);
  }

 private:
  alignas(cache_line) std::atomic<uint64_t> done_ns_{0};
  std::atomic<uint64_t> since_{0};  // 0: it waits
};

// The ranks that share CPUs with this one.
struct Crowd {
  struct Rank {
    const Work* work;
    platform::CpuClock clock;
  };
  Contention* contention = nullptr;
  Work* own = nullptr;
  std::vector<Rank> others;
};

// What the others have done since some moment: neither more than the time that they did not wait, nor than their CPU time. For
// one whose CPU this rank has now that is exact.
class Deeds {
 public:
  static constexpr size_t most_clocks = 16;  // of more ranks, CPU times are not asked for

  void begin(const Crowd& crowd, uint64_t now) {
    for (size_t i = 0; i < crowd.others.size(); ++i) {
      const Crowd::Rank& rank = crowd.others[i];
      const uint64_t work = rank.work->so_far(now);
      if (i >= most_clocks)
        work_of_more_ += work;
      else if (start_[i].work = work; !rank.clock.read(&start_[i].used))
        start_[i].used = unknown;
    }
  }
  uint64_t until(const Crowd& crowd, uint64_t now) const {
    uint64_t sum = 0 - work_of_more_;
    for (size_t i = 0; i < crowd.others.size(); ++i) {
      const uint64_t work = crowd.others[i].work->so_far(now);
      sum += i < most_clocks ? of_one(crowd.others[i], start_[i], work) : work;
    }
    return sum;
  }

 private:
  static constexpr uint64_t unknown = UINT64_MAX;
  struct Start {
    uint64_t work, used;
  };
  static uint64_t of_one(const Crowd::Rank& rank, const Start& start, uint64_t work) {
    uint64_t used;
    const bool known = start.used != unknown && rank.clock.read(&used);
    return known ? std::min(work - start.work, used - start.used) : work - start.work;
  }

  Start start_[most_clocks];
  uint64_t work_of_more_ = 0;
};

// The yields of one wait, as long as it lasts.
class Offers {
 public:
  static constexpr uint64_t turn_ns = 1'000'000;  // a yield of so long has cost a turn

  // crowd: null: nothing is noted.
  Offers(const Crowd* crowd, uint64_t began) : crowd_(crowd), began_(began), last_(began) {
    if (crowd == nullptr) return;
    crowd->own->pause(began);
    measured_ = crowd->contention->is_suspected();
    if (measured_) deeds_.begin(*crowd, began);
  }
  ~Offers() {
    if (crowd_ != nullptr) crowd_->own->go_on(asleep_ ? now_ns() : last_);
  }
  Offers(const Offers&) = delete;
  Offers& operator=(const Offers&) = delete;

  // After each of them. True: others than ranks have the CPUs, and the wait had better go on asleep.
  bool add() {
    if (crowd_ == nullptr) return false;
    const uint64_t now = now_ns();
    const uint64_t took = now - last_;
    any_ = true;
    last_ = now;
    if (took > turn_ns) {
      took_turn_ = true;
      others_ = others_ || (measured_ && deeds_.until(*crowd_, now) < took / 2);
    }
    return others_;
  }

  bool took_turn() const { return took_turn_; }

  // They are over: notes what they have shown.
  void end() const {
    if (!any_) return;
    if (took_turn_ && !measured_) return crowd_->contention->suspect();
    // A long wait without a lost turn may be for a rank that has lost its own.
    if (others_ || took_turn_ || last_ - began_ < turn_ns) crowd_->contention->note(others_, last_);
  }
  // As end(), and the wait goes on asleep.
  void end_asleep() {
    end();
    asleep_ = true;
  }

 private:
  const Crowd* const crowd_;
  const uint64_t began_;
  uint64_t last_;
  Deeds deeds_;  // since the wait began, if measured_
  bool measured_ = false, any_ = false, took_turn_ = false, others_ = false, asleep_ = false;
};

}  // namespace stretto::collective
