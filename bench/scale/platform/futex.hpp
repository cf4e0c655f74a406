// Stands for src/platform/futex.hpp: time passes while a rank looks again and again.
#pragma once
#include <simgrid/s4u.hpp>

namespace stretto::platform {

inline void yield() {
  simgrid::s4u::this_actor::sleep_for(1e-6);
}

inline void nap(uint64_t ns) {
  simgrid::s4u::this_actor::sleep_for(double(ns) * 1e-9);
}

}  // namespace stretto::platform
