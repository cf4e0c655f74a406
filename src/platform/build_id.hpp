// Which build of this library or program runs.
#pragma once
#include <cstdint>

namespace stretto::platform {

// From the linker's build identifier, which follows from all that was linked; 0 where the linker wrote none.
uint64_t build_id();

}  // namespace stretto::platform
