// The CPU time of processes of this node.
#pragma once
#include <time.h>

#include <cstdint>
#include <vector>

namespace stretto::platform {

class CpuTimes {
 public:
  // False: it cannot be told of that process.
  bool add(int32_t pid);
  // What all of them together have used so far, their threads included. 0: it cannot be told, as one has ended or there is none.
  uint64_t sum_ns() const;

 private:
  std::vector<clockid_t> clocks_;
};

}  // namespace stretto::platform
