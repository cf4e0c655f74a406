#include "trace/tracer.hpp"

#include "trace/calls.hpp"

namespace stretto::trace {

constinit Mode recording = Mode::off;

namespace {

// The calling thread's lane; null: it has none and will have none.
inline Lane* lane_of_thread() {
  Lane* lane = own_lane;
  if (__builtin_expect(lane == nullptr, 0)) lane = join_lane();
  return __builtin_expect(lane->lost, 0) ? nullptr : lane;
}

}  // namespace

void enter(const CallFacts& facts, uint64_t begin) {
  if (Lane* lane = lane_of_thread()) enter_on(*lane, facts, begin);
}

void leave(const CallFacts& facts, uint64_t begin, uint64_t end) {
  Lane* lane = lane_of_thread();
  if (__builtin_expect(lane == nullptr, 0)) return count(&TraceHeader::dropped_cells);
  leave_on(*lane, facts, begin, end);
}

void add_part(const CallFacts& facts, uint64_t begin, uint64_t end) {
  if (Lane* lane = lane_of_thread()) add_part_on(*lane, facts, begin, end);
}

}  // namespace stretto::trace
