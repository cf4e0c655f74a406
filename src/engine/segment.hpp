// The job's shared memory on this node: one sparse object, mapped by windows as they are needed.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/status.hpp"

namespace stretto::engine {

class Segment {
 public:
  static constexpr uint64_t window_bytes = uint64_t(64) << 20;
  static constexpr uint64_t most_windows = 1024;

  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // The largest object to be had up to most_windows, at least one window.
  Status create();
  void adopt(int fd, uint64_t bytes);  // takes over the descriptor
  int fd() const { return fd_; }
  uint64_t bytes() const { return bytes_; }
  void set_bytes(uint64_t bytes) { bytes_ = bytes; }

  // Address of an offset in this process; maps its window at the first use. Null when it cannot be mapped.
  void* at(uint64_t offset);

 private:
  int fd_ = -1;
  uint64_t bytes_ = 0;
  std::mutex mapping_;
  std::atomic<char*> windows_[most_windows] = {};
};

}  // namespace stretto::engine
