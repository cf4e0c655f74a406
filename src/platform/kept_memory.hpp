// Host memory for what comes from a GPU or goes there. Fresh memory would cost its page faults in every call, and a driver copies
// several times as fast to and from pages that it has locked (H100, 64 MiB out and in: 17.6 ms, locked 4.9): so blocks are kept,
// and locked at their first copy (platform/device_memory.cpp). None is ever freed: a driver may be gone when that would be
// due.
#pragma once
#include <cstddef>

namespace stretto::platform {

inline constexpr size_t least_kept = 64 << 10;          // bytes of a block
inline constexpr size_t most_kept = size_t(512) << 20;  // of all blocks of this process

// A block of at least so many bytes, on pages of its own. Null: less than is worth it, more than may be kept, or no memory.
char* take_kept(size_t bytes);
void give_back_kept(char* block);

struct Pages {
  void* begin = nullptr;
  size_t bytes = 0;
};
// The block that `host` lies in, the first time this is asked of it; else none.
Pages not_yet_locked(const void* host);

}  // namespace stretto::platform
