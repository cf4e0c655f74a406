#pragma once

#include <stdint.h>

#include <atomic>

namespace stretto::shim {

// How many windows of one-sided communication the program has: while it has any, who waits may be needed by others.
inline constinit std::atomic<int32_t> open_windows{0};

}  // namespace stretto::shim
