// The allocator behind the arena: the next one in the order of loading, usually libc's.
#pragma once
#include <cstddef>

namespace stretto::arena {

struct Allocator {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  size_t (*malloc_usable_size)(void*);
};

// Never null. Looking it up may itself ask for memory: such requests are served from a small buffer and never freed.
const Allocator& next_allocator();

// Whether the address lies in that small buffer.
bool is_early(const void* address);

// Whether libc is what stands behind, and this library's functions are the ones that everybody calls. `functions`: these, in the
// order of the structure's members.
bool alone(void* const (&functions)[10]);

}  // namespace stretto::arena
