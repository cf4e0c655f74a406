// What telling the tracer of a call costs.
#pragma once
#include <cstdint>

#include "trace/trace.hpp"

namespace stretto::trace {

// Ticks of one call's enter, leave and two readings of the clock, in 1/1024 tick, measured in private memory. The state must
// be as during the run: is a call wanted as an event?
uint64_t measure_call_cost();
// The two readings alone.
uint64_t measure_clock_cost();

}  // namespace stretto::trace
