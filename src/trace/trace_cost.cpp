#include "trace/trace_cost.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "trace/calls.hpp"

namespace stretto::trace {

namespace {

constexpr uint32_t calls = 512, rounds = 5;

CallFacts example_call(uint32_t number) {
  CallFacts facts;
  facts.sent = facts.received = 8 << number % 4;
  facts.sequence = (1 << 20) + number;  // Mode::aggregate keeps few of these as events
  facts.communicator = facts.datatype = 0;
  facts.op = 0;
  facts.collective = true;
  return facts;
}

uint64_t time_round(Lane& lane) {
  lane.events.rewind_scratch();
  const uint64_t start = ticks();
  for (uint32_t i = 0; i < calls; ++i) {
    const CallFacts facts = example_call(i);
    const uint64_t begin = ticks();
    enter_on(lane, facts, begin);
    leave_on(lane, facts, begin, ticks());
  }
  return ticks() - start;
}

uint64_t time_readings() {
  const uint64_t start = ticks();
  for (uint32_t i = 0; i < 2 * calls; ++i) [[maybe_unused]]
    const volatile uint64_t now = ticks();
  return ticks() - start;
}

}  // namespace

uint64_t measure_clock_cost() {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < rounds; ++i) least = std::min(least, time_readings());
  return least * 1024 / calls;
}

uint64_t measure_call_cost() {
  ThreadEntry entry{};
  Lane lane;
  lane.entry = &entry;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < rounds; ++i) least = std::min(least, time_round(lane));
  lane.cells.free_scratch();
  lane.partners.free_scratch();
  lane.events.free_scratch();
  return least * 1024 / calls;
}

}  // namespace stretto::trace
