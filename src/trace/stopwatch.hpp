// Times calls that may take less than reading the clock twice.
//
// A collective of a few bytes takes some 100 ns and a reading of the clock over 10, so the clock is not read on every such call.
// It is read at the start of whatever takes long (a wait beyond the first looks, staging, a call into MPI), which makes the time
// of that call exact to about a microsecond, and on one call in `sample_every`, which says what the short ones take.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "trace/record.hpp"

namespace stretto::trace {

struct Stopwatch {
  static constexpr uint32_t sample_every = 64;
  // Bits of `calls` that one which is sampled has not; 0: all are.
  static inline constinit uint32_t unsampled = sample_every - 1;

  uint64_t begin = 0;    // when the clock was first read in the present call; 0: not yet
  bool is_long = false;  // the present call takes long
  uint32_t calls = 0;
  uint64_t typical[kinds] = {};        // what a short call of each kind took when last sampled; 0: none was
  uint64_t typical_alone[kinds] = {};  // the same of those that MPI does on a single rank
};

__attribute__((tls_model("initial-exec"))) extern constinit thread_local Stopwatch stopwatch;

// From here on the present call is worth timing.
inline void takes_long() {
  stopwatch.is_long = true;
  if (stopwatch.begin == 0) stopwatch.begin = ticks();
}

// From here on every call that Timing is for is timed. To be asked for before there are other threads.
inline void time_every_call() {
  Stopwatch::unsampled = 0;
}
inline bool times_every_call() {
  return Stopwatch::unsampled == 0;
}

// Around one call of a kind; calls may nest.
class Timing {
  static constexpr uint64_t never_ran = 1;  // as what a short call takes

 public:
  explicit Timing(uint32_t kind)
      : kind_(kind),
        outer_begin_(stopwatch.begin),
        outer_long_(stopwatch.is_long),
        sampled_((stopwatch.calls++ & Stopwatch::unsampled) == 0 ||
                 (stopwatch.typical[kind] | stopwatch.typical_alone[kind]) == 0) {
    stopwatch.begin = sampled_ ? ticks() : 0;
    stopwatch.is_long = false;
  }
  // Whether it has been found worth timing.
  bool took_long() const { return stopwatch.is_long; }
  // Ends it: ticks spent, measured or typical. `alone`: MPI did it on a single rank.
  uint64_t stop(bool alone = false) {
    uint64_t& typical = alone ? stopwatch.typical_alone[kind_] : stopwatch.typical[kind_];
    uint64_t spent = stopwatch.begin ? ticks() - stopwatch.begin : typical;
    // A sample that the scheduler interrupted must not speak for the calls that follow: it counts twice the former at most.
    if (sampled_ && !stopwatch.is_long) typical = typical > never_ran && spent > 2 * typical ? 2 * typical : spent;
    drop();
    return spent;
  }
  // Ends one that someone else times. Of a kind that never runs there is nothing to sample.
  void leave() {
    if ((stopwatch.typical[kind_] | stopwatch.typical_alone[kind_]) == 0) stopwatch.typical[kind_] = never_ran;
    drop();
  }

 private:
  void drop() {
    stopwatch.begin = outer_begin_;
    stopwatch.is_long = outer_long_;
  }

  const uint32_t kind_;
  const uint64_t outer_begin_;
  const bool outer_long_;
  const bool sampled_;
};

}  // namespace stretto::trace
