// The unit in which cores exchange memory. Lines that different cores write stand apart by this much.
#pragma once
#include <cstddef>

namespace stretto {

inline constexpr size_t cache_line = 64;

constexpr size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Asks for a line to write to, ahead of the store. (The compiler's builtin asks for a copy to read where it may not assume more.)
inline void prefetch_for_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// The same of all lines of a range.
inline void prefetch_for_write(const void* begin, size_t bytes) {
  const char* lines = static_cast<const char*>(begin);
  for (size_t at = 0; at < bytes; at += cache_line) prefetch_for_write(lines + at);
}

// Gives lines that were written to the cache which the cores share, from where another core has them sooner than from this one's
// own. A hint that other processors take for no operation (cldemote).
inline void offer(const void* begin, size_t bytes) {
#if defined(__x86_64__)
  const char* lines = static_cast<const char*>(begin);
  for (size_t at = 0; at < bytes; at += cache_line) asm volatile(".byte 0x0f, 0x1c, 0x07" : : "D"(lines + at) : "memory");
#else
  (void)begin;
  (void)bytes;
#endif
}

}  // namespace stretto
