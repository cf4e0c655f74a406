// Which of several ways to do something with so many bytes is the fastest, found out by trying them all: by CPU, caches and
// kernel each may take several times as long as another. Either one rank chooses and takes the time, and the others go along; or
// all do, and note the same times. Only blocking calls try: what runs beside others cannot be timed.
//
// A trial is a few calls the one way, then a few the next: each way needs its own memory in the caches, so only calls that follow
// one another tell its time; the middle one of them counts. Then the fastest way is used, untimed, until the next trial: at first
// soon, as memory that is used for the first time tells little, then after twice as many calls each time that nothing has
// changed, and after the most where the difference is clear.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stretto::collective {

template <int ways>
class Trials {
 public:
  struct Choice {
    int way;     // 0 .. ways - 1
    bool timed;  // the time is to be noted
  };

  // `untried`: the way where nothing is known and the call cannot be timed.
  Choice choose(size_t bytes, bool may_time = true, int untried = 0) {
    Sizes& sizes = of(bytes);
    if (!may_time) return {fastest(bytes, untried), false};
    if (settled_ || sizes.untimed > 0) {
      sizes.untimed -= !settled_;
      return {sizes.fastest, false};
    }
    return {int(sizes.noted / calls_each), true};
  }

  // So far as is known; `untried` before anything is.
  int fastest(size_t bytes, int untried = 0) {
    const Sizes& sizes = of(bytes);
    return sizes.period > 0 || settled_ ? sizes.fastest : untried;
  }

  // A call that was to be timed could not be. Later ones make up for it, but not for ever: not every program lets calls be timed.
  void miss(size_t bytes) {
    Sizes& sizes = of(bytes);
    if (sizes.period == 0 || ++sizes.missed < calls_missed) return;
    sizes.untimed = sizes.period;
    sizes.forget();
  }

  // Of a call that was to be timed.
  void note(size_t bytes, int way, uint64_t ticks) {
    Sizes& sizes = of(bytes);
    sizes.times[way][sizes.noted++ % calls_each] = float(ticks) / float(bytes);
    if (sizes.noted == ways * calls_each) decide(sizes);
  }

  // For good.
  void settle(int way) {
    settled_ = true;
    for (Sizes& sizes : sizes_) sizes.fastest = way;
  }

 private:
  static constexpr uint32_t calls_each = 5, calls_missed = 16, shortest = 8, longest = 4096;
  static constexpr int smallest = 13, classes = 13;  // up to 16 KiB, ..., from 32 MiB

  // Between two powers of two bytes.
  struct Sizes {
    int fastest = 0;
    uint32_t noted = 0, missed = 0, untimed = 0;
    uint32_t period = 0;            // calls between this trial and the next; 0: there was none yet
    float times[ways][calls_each];  // ticks per byte in this trial
    void forget() { noted = missed = 0; }
  };

  Sizes& of(size_t bytes) { return sizes_[std::clamp(int(std::bit_width(bytes)) - 1 - smallest, 0, classes - 1)]; }

  // Where the one from before is confirmed, and clearly so, the next trial can wait.
  static void decide(Sizes& sizes) {
    float usual[ways];
    for (int way = 0; way < ways; ++way) {
      float* times = sizes.times[way];
      std::nth_element(times, times + calls_each / 2, times + calls_each);
      usual[way] = times[calls_each / 2];
    }
    const float* least = std::min_element(usual, usual + ways);
    const float most = *std::max_element(usual, usual + ways);
    const bool confirmed = sizes.period > 0 && least == &usual[sizes.fastest];
    sizes.fastest = int(least - usual);
    sizes.period = confirmed ? std::min(2 * sizes.period, longest) : shortest;
    sizes.untimed = confirmed && most > 2 * *least ? longest : sizes.period;
    sizes.forget();
  }

  Sizes sizes_[classes];
  bool settled_ = false;
};

}  // namespace stretto::collective
