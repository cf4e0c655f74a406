#include "trace/events.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/cacheline.hpp"
#include "base/clock.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace stretto::trace {

namespace {

// Page faults cost several times as much one by one; a whole section at once would make its rank late for the next call.
constexpr size_t piece_bytes = 64 << 10;

// What making room costs is part of what a call costs, where each call is an event. Under the mutex.
void note_cost(uint64_t spent, size_t bytes) {
  state.section_ticks += spent;
  state.section_bytes += bytes;
  if (state.mode != Mode::full || state.section_bytes == 0) return;
  const uint64_t share = state.section_ticks * 1024 * sizeof(Event) / state.section_bytes;
  if (TraceHeader* header = live_header()) put(header->event_cost_ticks, state.call_cost + share);
}

Event* end_of(SectionHeader* section) {
  return section ? entries<Event>(section) + capacity<Event>(section->bytes) : nullptr;
}

}  // namespace

void Events::begin(SectionHeader* section) {
  section_ = section;
  next_ = end_ = section ? entries<Event>(section) : nullptr;
}

void Events::begin_scratch() {
  begin(take_scratch(SectionType::events, sizeof(Event), first_bytes));
  end_ = end_of(section_);
}

// The next piece of the section becomes ready; the one before leaves the process (not the file), so that dropping the whole
// section at its end takes no time either.
void Events::populate() {
  char* const start = reinterpret_cast<char*>(section_);
  const size_t ready = round_up(size_t(reinterpret_cast<char*>(end_) - start), page_bytes);
  const size_t from = end_ == entries<Event>(section_) ? 0 : ready;
  const size_t to = std::min(from + piece_bytes, bytes_);
  const uint64_t begun = ticks();
  if (from > piece_bytes) madvise(start + from - piece_bytes, piece_bytes - page_bytes, MADV_DONTNEED);
  madvise(start + from, to - from, MADV_POPULATE_WRITE);
  end_ = entries<Event>(section_) + capacity<Event>(to);
  note_cost(ticks() - begun, to - from);
}

void Events::begin_next(uint16_t thread) {
  bytes_ = std::min(bytes_ == 0 ? first_bytes : 4 * bytes_, state.event_section);
  const uint64_t begun = ticks();
  if (section_) drop_section(section_);
  begin(take_section(SectionType::events, thread, sizeof(Event), bytes_));
  note_cost(ticks() - begun, 0);
}

Event* Events::take(uint32_t number, uint16_t thread) {
  if (thread == none16) {
    begin_scratch();
  } else if (section_ || !state.full_of_events.load(std::memory_order_relaxed)) {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (end_ == end_of(section_)) begin_next(thread);
    if (section_) populate();
  }
  if (size_t(end_ - next_) >= number) return next_;
  if (thread != none16) count(&TraceHeader::dropped_events);
  return nullptr;
}

void Events::free_scratch() {
  if (section_) drop_section(section_);
  *this = {};
}

}  // namespace stretto::trace
