#include "platform/cpu_time.hpp"

namespace stretto::platform {

bool CpuTimes::add(int32_t pid) {
  clockid_t clock;
  if (clock_getcpuclockid(pid, &clock) != 0) return false;
  clocks_.push_back(clock);
  return true;
}

uint64_t CpuTimes::sum_ns() const {
  uint64_t sum = 0;
  for (const clockid_t clock : clocks_) {
    timespec used;
    if (clock_gettime(clock, &used) != 0) return 0;
    sum += uint64_t(used.tv_sec) * 1'000'000'000 + uint64_t(used.tv_nsec);
  }
  return sum;
}

}  // namespace stretto::platform
