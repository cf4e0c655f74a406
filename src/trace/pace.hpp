// Which calls of a function are timed that never waits for another process and mostly takes less than reading the clock twice.
//
// The first `steady` calls are timed, and as many after each that took long. Else one of each block of `block` calls is, at a
// random place of it, and counts for the whole block: so the sum is right on an average whatever the calls take and in whatever
// rhythm they come; where they take about alike its standard error is sqrt((block - 1) / calls) of it. One that takes longer
// than long_ever has been interrupted; it counts for itself alone.
#pragma once
#include <cstdint>

namespace stretto::trace {

class Pace {
 public:
  static constexpr uint32_t block = 8, steady = 64;
  static constexpr uint64_t long_call = 4096, long_ever = uint64_t(1) << 21;  // ticks: some 2 us and 1 ms

  // Whether the call that begins now is to be timed; then counted() must follow.
  bool timed() {
    if (__builtin_expect(left_ == 0, 0)) return true;
    --left_;
    return false;
  }

  // A call that was timed out of turn, and counts for itself.
  void saw(uint64_t spent) {
    if (spent >= long_call) short_ = 0;
  }

  // Ticks that the timed call, which took `spent`, adds to the sum. From `alone` on it counts for itself alone.
  uint64_t counted(uint64_t spent, uint64_t alone = long_ever) {
    const uint64_t weight = sampled_ && spent < alone ? block : 1;
    short_ = spent >= long_call ? 0 : short_ < steady ? uint8_t(short_ + 1) : short_;
    sampled_ = short_ == steady;
    left_ = rest_;
    rest_ = 0;
    if (sampled_) begin_block();
    return weight * spent;
  }

 private:
  void begin_block() {
    random_ = random_ * 1664525 + 1013904223;
    const uint32_t place = random_ >> 16 & (block - 1);
    static_assert((block & (block - 1)) == 0 && 2 * block <= UINT8_MAX && steady <= UINT8_MAX);
    left_ = uint8_t(left_ + place);
    rest_ = uint8_t(block - 1 - place);
  }

  uint32_t random_ = 0;
  uint8_t left_ = 0;      // calls that are not timed, from here on
  uint8_t rest_ = 0;      // calls of the block behind its timed one
  uint8_t short_ = 0;     // calls in a row that did not take long
  bool sampled_ = false;  // the call to be timed counts for its block
};

}  // namespace stretto::trace
