// A lane: what one thread at a time writes to. A thread that ends leaves its lane, unfinished sections and all, to the next.
#pragma once
#include "trace/events.hpp"
#include "trace/sums.hpp"

namespace stretto::trace {

struct Lane {
  constexpr explicit Lane(bool is_lost = false) : lost(is_lost) {}
  ThreadEntry* entry = nullptr;
  uint16_t number = none16;  // index of the entry; none16: for measurements, in private memory
  bool lost;                 // there is no room for this thread: nothing can be counted but that it was not
  uint32_t generation = 0;   // of the sums
  Sums<Cell> cells;
  Sums<PartnerCell> partners;
  Events events;
};

extern constinit thread_local Lane* own_lane __attribute__((tls_model("initial-exec")));

// The calling thread's lane from now on, never null.
Lane* join_lane();

// Zeros all sums of the lane, which were of an earlier generation.
void catch_up(Lane& lane);

// Zeros the sums of all lanes. Under the mutex.
void zero_lanes();

Status prepare_lanes();
void forget_lanes();  // in the child of a fork

}  // namespace stretto::trace
