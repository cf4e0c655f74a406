// Iterations and what is done now and then.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/settings.hpp"

namespace stretto::shim::profile {

void prepare_iterations(const Settings& settings);

// The `sequence`-th collective on MPI_COMM_WORLD is about to begin.
extern constinit uint64_t iteration_calls;
void iteration_begins(uint64_t number);
inline void world_collective(uint32_t sequence) {
  if (__builtin_expect(iteration_calls != 0, 0) && sequence % iteration_calls == 0) iteration_begins(sequence / iteration_calls);
}

// A millisecond or more after the last time: samples the queues, and lets ticks be converted even after a kill.
extern constinit std::atomic<uint64_t> next_look;
void look(uint64_t now);
inline void look_around(uint64_t now) {
  if (__builtin_expect(now >= next_look.load(std::memory_order_relaxed), 0)) look(now);
}

}  // namespace stretto::shim::profile
