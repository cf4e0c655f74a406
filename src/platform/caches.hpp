// Cache sizes as sysfs lists them.
#pragma once
#include <cstddef>

namespace stretto::platform {

// Bytes of the data or unified cache of `level` listed in `directory` (.../cpuN/cache), of the largest one for level 0.
// 0 when there is none.
size_t cache_bytes(const char* directory, int level);

}  // namespace stretto::platform
