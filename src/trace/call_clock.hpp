// The time of one call that is passed on, at no more cost than it is worth.
//
// Calls that never wait are timed at a pace (trace/pace.hpp). Of calls that may wait none that takes long may be missed: where
// two looks at the coarse clock, which the kernel sets forward every few milliseconds, cost much less than two readings of the
// cycle counter, every call is timed that begins after this clock has moved; those in a burst within one step of it are timed at
// a pace, and one that lasts two steps counts for itself all the same.
#pragma once
#include "base/clock.hpp"
#include "trace/pace.hpp"

namespace stretto::trace {

enum class Clocking : uint8_t {
  every_call,
  may_wait,
  never_waits,
};

// The coarse clock: two of its steps, in its own unit and in ticks.
struct Coarse {
  bool is_cheap = false;  // false: not used
  uint64_t two_steps_ns = 0, two_steps = UINT64_MAX;
};
extern constinit Coarse coarse;
extern constinit thread_local uint64_t coarse_seen __attribute__((tls_model("initial-exec")));

// Decides whether it is used. `start`: both clocks at a time some milliseconds ago at least; else it is not.
void prepare_coarse(const ClockPair& start);

class CallClock {
 public:
  // `reading`: stands for the begin of a call that is not timed.
  CallClock(Pace& pace, Clocking how, uint64_t reading = 0) : pace_(pace), how_(how) {
    is_timed_ = decide();
    begin_ = is_timed_ ? ticks() : reading;
  }
  bool is_timed() const { return is_timed_; }
  uint64_t begin() const { return begin_; }

  // At the end of the call: what it adds to the sum.
  uint64_t spent() const {
    if (is_timed_) {
      const uint64_t spent = ticks() - begin_;
      if (!is_paced_) {
        pace_.saw(spent);
        return spent;
      }
      return pace_.counted(spent, how_ == Clocking::may_wait ? coarse.two_steps : Pace::long_ever);
    }
    if (how_ != Clocking::may_wait) return 0;
    const uint64_t passed = coarse_ns() - coarse_begin_;
    return __builtin_expect(passed < coarse.two_steps_ns, 1) ? 0 : in_ticks(passed);
  }

 private:
  bool decide() {
    if (how_ == Clocking::every_call) return true;
    if (how_ == Clocking::may_wait) {
      if (!coarse.is_cheap) return true;
      coarse_begin_ = coarse_ns();
      if (coarse_begin_ != coarse_seen) {
        coarse_seen = coarse_begin_;
        return true;
      }
    }
    is_paced_ = true;
    return pace_.timed();
  }
  static uint64_t in_ticks(uint64_t ns) { return uint64_t(double(ns) * double(coarse.two_steps) / double(coarse.two_steps_ns)); }

  Pace& pace_;
  const Clocking how_;
  bool is_paced_ = false;  // it may stand for others
  bool is_timed_;
  uint64_t begin_;
  uint64_t coarse_begin_ = 0;
};

}  // namespace stretto::trace
