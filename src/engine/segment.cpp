#include "engine/segment.hpp"

#include <unistd.h>

#include "platform/shared_memory.hpp"

namespace stretto::engine {

Segment::~Segment() {
  for (auto& window : windows_)
    if (char* address = window.load()) platform::unmap_shared_object(address, window_bytes);
  if (fd_ >= 0) close(fd_);
}

// Sparse: the size bounds what can be handed out, not what is used. A limit on file sizes may ask for less.
Status Segment::create() {
  Status status;
  for (uint64_t windows = most_windows; windows >= 1; windows /= 4) {
    status = platform::create_shared_object("stretto", windows * window_bytes, &fd_);
    if (status.ok()) bytes_ = windows * window_bytes;
    if (status.ok()) break;
  }
  return status;
}

void Segment::adopt(int fd, uint64_t bytes) {
  fd_ = fd;
  bytes_ = bytes;
}

void* Segment::at(uint64_t offset) {
  if (offset >= bytes_) return nullptr;
  std::atomic<char*>& window = windows_[offset / window_bytes];
  char* address = window.load(std::memory_order_acquire);
  if (address == nullptr) {
    std::lock_guard<std::mutex> guard(mapping_);
    address = window.load(std::memory_order_relaxed);
    if (address == nullptr) {
      void* mapped;
      uint64_t begin = offset / window_bytes * window_bytes;
      if (!platform::map_shared_object(fd_, begin, window_bytes, &mapped).ok()) return nullptr;
      address = static_cast<char*>(mapped);
      window.store(address, std::memory_order_release);
    }
  }
  return address + offset % window_bytes;
}

}  // namespace stretto::engine
