// The CPU time of a process of this node.
#pragma once
#include <time.h>

#include <cstdint>

namespace stretto::platform {

class CpuClock {
 public:
  CpuClock() = default;
  explicit CpuClock(int32_t pid) : known_(clock_getcpuclockid(pid, &clock_) == 0) {}

  // What it has used so far. Of a thread that runs on another CPU at this moment the kernel tells what it had used at that CPU's
  // last tick, milliseconds ago. False: it cannot be told; the process may have ended.
  bool read(uint64_t* ns) const {
    timespec used;
    if (!known_ || clock_gettime(clock_, &used) != 0) return false;
    *ns = uint64_t(used.tv_sec) * 1'000'000'000 + uint64_t(used.tv_nsec);
    return true;
  }

 private:
  clockid_t clock_ = 0;
  bool known_ = false;
};

}  // namespace stretto::platform
