// The GPU's clock against the host's.
//
// NCCL's proxy thread tells when a channel of a kernel began and ended, in ns of the GPU, some time after it happened. The
// smallest delay between the two clocks in the last second or two is that of the promptest report: GPU time plus it is never
// earlier than the truth, and later by the time that this one report took. One clock per communicator, since each has one GPU.
#pragma once
#include <cstdint>

#include "base/clock.hpp"

namespace stretto::nccl {

// Both clocks of the host at one moment.
struct HostClocks {
  uint64_t ns, at;  // CLOCK_MONOTONIC and ticks

  static HostClocks now() {
    HostClocks best{};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 4 && least > 1000; ++i) {  // again where the thread lost its CPU in between
      const uint64_t before = ticks();
      const uint64_t read = now_ns();
      const uint64_t gap = ticks() - before;
      if (gap < least) best = {read, before + gap / 2};
      if (gap < least) least = gap;
    }
    return best;
  }

  // The first that was looked at; how fast ticks are is told by the time since.
  static const HostClocks& first() {
    static const HostClocks clocks = now();
    return clocks;
  }

  // The ticks at another time, not long ago.
  uint64_t ticks_at(uint64_t other_ns) const {
    const double span = double(ns - first().ns);
    const double rate = span > 0 ? double(at - first().at) / span : 1;
    return at - uint64_t(int64_t(rate * double(int64_t(ns - other_ns))));
  }
};

class GpuClock {
 public:
  // A time of the GPU that has passed at `now_ns` (CLOCK_MONOTONIC).
  void observe(uint64_t gpu_ns, uint64_t now_ns) {
    const int64_t delay = int64_t(now_ns - gpu_ns);
    if (!known_ || now_ns - since_ns_ > window_ns) {
      earlier_ = known_ && now_ns - since_ns_ <= 2 * window_ns ? recent_ : delay;
      recent_ = delay;
      since_ns_ = now_ns;
      known_ = true;
    }
    if (delay < recent_) recent_ = delay;
  }

  uint64_t to_host_ns(uint64_t gpu_ns) const { return gpu_ns + uint64_t(recent_ < earlier_ ? recent_ : earlier_); }

 private:
  static constexpr uint64_t window_ns = 1'000'000'000;  // clocks drift apart by some us in that time
  int64_t recent_ = 0, earlier_ = 0;
  uint64_t since_ns_ = 0;
  bool known_ = false;
};

}  // namespace stretto::nccl
