// Where a pointer points: host or device.
#pragma once
#include <cstdint>

namespace stretto::platform {

// 0: host; 1..13: memory of CUDA device + 1; 14: managed memory. Cheap where the process has loaded no CUDA driver.
uint8_t memory_place(const void* p);

}  // namespace stretto::platform
