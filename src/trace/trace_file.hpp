// The file of a trace: grown by whole pages, each piece allocated on disk before it is mapped, so that no store can fail.
#pragma once
#include <limits.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace stretto::trace {

// Not thread-safe. Holds no descriptor between calls: programs close those that they do not know, and reuse their numbers.
class TraceFile {
 public:
  // A new, empty file rank-<pid><tail> (another name where that is taken). refused: it cannot be made.
  Status create(const char* directory, const char* tail);

  // Appends `bytes`, a multiple of page_bytes, as zeros and maps them at *address. On failure the file is as it was.
  Status grow(size_t bytes, void** address);

  uint64_t bytes() const { return end_; }
  void remove() const;

 private:
  int reopen() const;
  Status allocate(int fd, size_t bytes) const;

  char path_[PATH_MAX] = {};
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t end_ = 0;
};

}  // namespace stretto::trace
