// What a call of the kernels reads and writes, told to the thread sanitizer: their loops are compiled without it, as it looks at
// every element by itself. Nothing where there is none.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_read_range(void* begin, long bytes);
extern "C" void __tsan_write_range(void* begin, long bytes);
#endif

namespace stretto::kernels {

inline void watch_read([[maybe_unused]] const void* begin, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_THREAD__)
  __tsan_read_range(const_cast<void*>(begin), long(bytes));
#endif
}

inline void watch_write([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_THREAD__)
  __tsan_write_range(begin, long(bytes));
#endif
}

}  // namespace stretto::kernels
