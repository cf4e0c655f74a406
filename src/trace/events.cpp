#include "trace/events.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace stretto::trace {

namespace {

// What making room costs is part of what a call costs, where each call is an event.
void note_cost(uint64_t spent, uint64_t events) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.section_ticks += spent;
  state.section_events += events;
  if (state.mode != Mode::full || state.section_events == 0) return;
  const uint64_t share = state.section_ticks * 1024 / state.section_events;
  if (TraceHeader* header = live_header()) put(header->event_cost_ticks, state.call_cost + share);
}

}  // namespace

void Events::begin(SectionHeader* tail) {
  tail_ = tail;
  next_ = end_ = nullptr;
  if (!tail) return;
  next_ = entries<Event>(tail);
  end_ = next_ + capacity<Event>(tail->bytes);
}

void Events::take_tail(uint16_t thread) {
  const size_t bytes = std::min(tail_bytes, state.event_section);
  SectionHeader* tail = nullptr;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    tail = take_section(SectionType::tail, thread, sizeof(Event), bytes);
  }
  if (tail) madvise(tail, bytes, MADV_POPULATE_WRITE);
  begin(tail);
}

// Whether there is a section of the file with room for `number` events. Sections grow, so that short jobs have small files.
bool Events::has_home(uint64_t number, uint16_t thread) {
  if (home_ && home_used_ + number <= capacity<Event>(home_bytes_)) return true;
  const std::lock_guard<std::mutex> lock(state.mutex);
  const size_t bytes = std::min(home_bytes_ == 0 ? tail_bytes : 4 * home_bytes_, state.event_section);
  const uint64_t taken = take_unmapped(thread, bytes);
  if (!taken) return false;
  home_ = taken;
  home_bytes_ = bytes;
  home_used_ = 0;
  return true;
}

// At every moment a reader finds each event once: those in front of `first` are to be skipped where they are in the tail as well.
void Events::empty_tail(uint16_t thread) {
  Event* const events = entries<Event>(tail_);
  const uint64_t number = uint64_t(next_ - events);
  const uint64_t begun = ticks();
  if (!has_home(number, thread)) return;
  const Status status = write_events(home_, thread, home_bytes_, home_used_, events, number);
  if (!status.ok()) {
    const std::lock_guard<std::mutex> lock(state.mutex);
    return become_full(true, status);
  }
  home_used_ += number;
  publish(*tail_, 0);
  std::atomic_ref<uint64_t>(tail_->first).store(tail_->first + number, std::memory_order_release);
  next_ = events;
  note_cost(ticks() - begun, number);
}

Event* Events::make_room(uint32_t number, uint16_t thread) {
  if (thread == none16) {
    begin(take_scratch(SectionType::tail, sizeof(Event), tail_bytes));
  } else if (!state.full_of_events.load(std::memory_order_relaxed)) {
    tail_ ? empty_tail(thread) : take_tail(thread);
  }
  if (size_t(end_ - next_) >= number) return next_;
  if (thread != none16) count(&TraceHeader::dropped_events);
  return nullptr;
}

void Events::free_scratch() {
  if (tail_) drop_section(tail_);
  *this = {};
}

}  // namespace stretto::trace
