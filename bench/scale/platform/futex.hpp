// Stands for src/platform/futex.hpp: time passes while a rank looks again and again.
#pragma once
#include <simgrid/s4u.hpp>

namespace stretto::platform {

inline void yield() {
  simgrid::s4u::this_actor::sleep_for(1e-6);
}

}  // namespace stretto::platform
