// The arena of a process: large blocks of memory out of one sparse shared object, which peers can map as a whole.
//
// The range of addresses is reserved once and never grows; memory comes page by page as it is touched. Freed memory is kept for
// the next block up to a limit, then goes back to the system. The object has no name and dies with its last process.
//
// Fork: a child must not share what it writes. The forking thread copies the blocks in use into private memory before the fork,
// and the child moves the copy to where the arena was: from then on its arena is private, and nobody's window. What other threads
// of the parent write during the copy may or may not be in it. vfork and posix_spawn copy nothing: their child shares all memory
// anyway until it runs its program.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "arena/interface.hpp"
#include "arena/pages.hpp"
#include "base/status.hpp"
#include "platform/reservation.hpp"

namespace stretto::arena {

inline constexpr size_t page_bytes = 4096;

struct Limits {
  uint64_t range = 0;                  // bytes reserved
  uint64_t used = 0;                   // most bytes in blocks
  uint64_t idle = 0;                   // most bytes kept for the next blocks
  uint64_t untold_ns = 1'000'000'000;  // that forks may take to copy before a line says so
};

// From the machine's memory and the control group's limit.
Limits default_limits();

class Arena {
 public:
  constexpr Arena() = default;  // never destroyed in the preload: blocks are used until the very end
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Status open(const Limits& limits);
  void close();  // for tests; no block may be in use

  bool holds(const void* address) const {
    size_t range = range_.load(std::memory_order_acquire);  // stored after the base
    return uintptr_t(address) - uintptr_t(base_.load(std::memory_order_relaxed)) < range;
  }

  // All keep errno. `alignment` is a power of two. Null: no room, ask another allocator. *zeroed: every byte is zero.
  void* allocate(size_t bytes, size_t alignment, bool* zeroed);
  bool release(void* block);               // false: no block begins there
  size_t usable(const void* block) const;  // 0: no block begins there
  bool resize(void* block, size_t bytes);  // in place; false: it stays as it is

  View view() const;

  // Around fork, in this order in the parent; the child calls the third. Between the first and the others no block comes or goes.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

  uint64_t used() const { return pages_.used() * page_bytes; }
  uint64_t idle() const { return pages_.idle() * page_bytes; }

 private:
  char* at(PageIndex page) const { return base_.load(std::memory_order_relaxed) + size_t(page) * page_bytes; }
  PageIndex page_of(const void* block) const;
  void discard(PageIndex first, PageIndex pages);
  void discard_idle();
  size_t copy_used(char* to) const;  // bytes copied
  size_t copy_block(char* to, size_t begin, size_t end, bool sparse) const;

  mutable pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<char*> base_{nullptr};
  std::atomic<size_t> range_{0};
  Limits limits_;
  Pages pages_;
  int fd_ = -1;
  platform::ObjectId object_;
  bool holds_parents_ = false;  // after a fork for which there was no room: what the parent writes later too, in unused pages
  bool shared_ = true;
  char* snapshot_ = nullptr;
  uint64_t fork_bytes_ = 0, fork_ns_ = 0;  // what forks have copied so far, and how long that took
  bool told_ = false;                      // a line has said so
};

}  // namespace stretto::arena
