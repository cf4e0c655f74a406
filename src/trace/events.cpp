#include "trace/events.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace stretto::trace {

namespace {

// What taking sections costs is part of what a call costs, where each call is an event.
void note_cost(uint64_t spent, size_t bytes) {
  if (state.mode != Mode::full) return;
  state.section_ticks += spent;
  state.section_events += capacity<Event>(bytes);
  const uint64_t share = state.section_ticks * 1024 / state.section_events;
  if (TraceHeader* header = live_header()) put(header->event_cost_ticks, state.call_cost + share);
}

// Ready to be written without page faults, which cost several times as much one by one.
SectionHeader* take_populated(uint16_t thread, size_t bytes) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  const uint64_t begin = ticks();
  SectionHeader* section = take_section(SectionType::events, thread, sizeof(Event), bytes);
  if (section == nullptr) return nullptr;
  madvise(section, bytes, MADV_POPULATE_WRITE);
  note_cost(ticks() - begin, bytes);
  return section;
}

}  // namespace

void Events::begin(SectionHeader* section, size_t bytes) {
  section_ = section;
  bytes_ = bytes;
  next_ = section ? entries<Event>(section) : nullptr;
  end_ = section ? next_ + capacity<Event>(bytes) : nullptr;
}

Event* Events::take(uint32_t number, uint16_t thread) {
  const bool full = state.full_of_events.load(std::memory_order_relaxed) && thread != none16;
  if (!full) {
    if (section_) drop_section(section_);
    const size_t bytes = bytes_ == 0 ? std::min(first_bytes, state.event_section) : std::min(4 * bytes_, state.event_section);
    begin(thread == none16 ? take_scratch(SectionType::events, sizeof(Event), bytes) : take_populated(thread, bytes), bytes);
    if (size_t(end_ - next_) >= number) return next_;
  }
  if (thread != none16) count(&TraceHeader::dropped_events);
  return nullptr;
}

void Events::free_scratch() {
  if (section_) drop_section(section_);
  *this = {};
}

}  // namespace stretto::trace
