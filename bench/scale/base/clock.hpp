// Stands for src/base/clock.hpp: the simulated clock.
#pragma once
#include <cstdint>
#include <simgrid/s4u.hpp>

namespace stretto {

inline uint64_t now_ns() {
  return uint64_t(simgrid::s4u::Engine::get_clock() * 1e9);
}
inline uint64_t ticks() {
  return now_ns();
}
inline void cpu_relax() {}

}  // namespace stretto
