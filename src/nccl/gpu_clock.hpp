// The GPU's clock against the host's.
//
// NCCL's proxy thread tells when a channel of a kernel began and ended, in ns of the GPU, some time after it happened. The
// smallest delay between the two clocks in the last second or two is that of the promptest report: GPU time plus it is never
// earlier than the truth, and later by the time that this one report took. One clock per communicator, since each has one GPU.
#pragma once
#include <cstdint>

namespace stretto::nccl {

class GpuClock {
 public:
  // A time of the GPU that has passed at `now_ns` (CLOCK_MONOTONIC).
  void observe(uint64_t gpu_ns, uint64_t now_ns) {
    const int64_t delay = int64_t(now_ns - gpu_ns);
    if (!known_ || now_ns - since_ns_ > window_ns) {
      earlier_ = known_ ? recent_ : delay;
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
