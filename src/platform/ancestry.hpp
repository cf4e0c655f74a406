// Which processes started this one.
#pragma once
#include <cstdint>

namespace stretto::platform {

// pid of the nearest ancestor whose command name (/proc/PID/comm) is one of `names` (null-terminated list); 0 when there is none.
int32_t ancestor_named(const char* const* names);

}  // namespace stretto::platform
