// The pool: extents of the job's shared memory, for boards and staging cells of communicators.
//
// Extents come in powers of two, aligned to their size, so that none crosses a window of the mapping. Freed ones are used again,
// newest first. The pool is capped; a full pool is an answer, not an error. Its lock survives the death of its holder.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/status.hpp"
#include "engine/segment.hpp"

namespace stretto::engine {

inline constexpr int smallest_class = 12;  // 4 KiB
inline constexpr int largest_class = 26;   // 64 MiB, one window
inline constexpr int class_count = largest_class - smallest_class + 1;

// In shared memory.
struct PoolHeader {
  pthread_mutex_t lock;
  uint64_t next;               // first byte never handed out
  uint64_t in_use;             // bytes asked for and not freed
  uint64_t idle;               // bytes freed and not handed out again
  uint64_t cap;                // in_use never exceeds it
  uint64_t bytes;              // of the segment
  uint64_t free[class_count];  // offset of the newest free extent of a class; 0: none. An extent's first word is the next one.
  uint32_t broken;             // a holder of the lock died: nothing is handed out any more
};

class Pool {
 public:
  Pool() = default;
  Pool(PoolHeader* header, Segment* segment) : header_(header), segment_(segment) {}

  static Status initialise(PoolHeader* header, uint64_t first, uint64_t cap, uint64_t bytes);

  // Offset of an extent of at least `bytes`, or 0. *used: somebody has had it before; else it is zero without being touched.
  uint64_t allocate(uint64_t bytes, bool* used = nullptr);
  void release(uint64_t offset, uint64_t bytes);

  // What all ranks find in `place`, which is 0 at first: an extent, its offset with `note` in the low bits, that whoever comes
  // first takes; or `none`, where that one found no room. (Were each to take one, and all but one to give it back, there would
  // have to be room for several.)
  enum class Contents : uint8_t { any, zeros };
  uint64_t allocate_once(std::atomic<uint64_t>& place, uint64_t bytes, Contents contents, uint32_t note, uint32_t none);

  uint64_t in_use() const { return header_->in_use; }
  bool is_half_used() const { return header_->in_use > header_->cap / 2; }

 private:
  bool lock();
  uint64_t take(int size_class, bool* used);
  uint64_t take_within_cap(uint64_t bytes, bool* used);
  void clear(uint64_t offset, uint64_t bytes);

  PoolHeader* header_ = nullptr;
  Segment* segment_ = nullptr;
};

}  // namespace stretto::engine
