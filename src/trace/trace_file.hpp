// The file of a trace: grown by whole pages, each piece allocated on disk before it is mapped, so that no store can fail.
#pragma once
#include <limits.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"

namespace stretto::trace {

// Bytes for a place of the file.
struct Piece {
  uint64_t offset;
  const void* data;
  size_t bytes;
};

// Not thread-safe. Holds no descriptor between calls: programs close those that they do not know, and reuse their numbers.
class TraceFile {
 public:
  // A new, empty file rank-<pid><tail> (another name where that is taken). refused: it cannot be made.
  Status create(const char* directory, const char* tail);

  // Appends `bytes`, a multiple of page_bytes, as zeros and maps them at *address. On failure the file is as it was.
  Status grow(size_t bytes, void** address);

  // Appends `bytes`, which begin with `beginning`, without mapping them; they lie at *offset. On failure as grow().
  Status extend(size_t bytes, const Piece& beginning, uint64_t* offset);

  // Writes to what was appended before, in this order. Other threads may extend the file meanwhile.
  Status write(std::span<const Piece> pieces) const;

  uint64_t bytes() const { return end_; }
  void remove() const;

 private:
  int reopen() const;
  Status allocate(int fd, size_t bytes) const;
  template <class Fill>
  Status append(size_t bytes, Fill&& fill);

  char path_[PATH_MAX] = {};
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t end_ = 0;
};

}  // namespace stretto::trace
