// The one trace of this process, and how sections are had from its file.
#pragma once
#include <atomic>
#include <mutex>

#include "trace/trace.hpp"
#include "trace/trace_file.hpp"

namespace stretto::trace {

// Which calls become events at present.
enum class Wanted : uint32_t { none, sample, all };

struct TraceState {
  std::atomic<TraceHeader*> header{nullptr};  // null: nothing is traced
  std::atomic<Wanted> wanted{Wanted::none};
  std::atomic<uint32_t> generation{0};  // how often the sums were reset
  std::atomic<bool> full_of_events{false};
  std::mutex mutex;  // whoever takes sections or lanes, or appends to tables

  // Under the mutex.
  TraceFile file;
  Mode mode = Mode::off;
  uint64_t limit_bytes = 0;
  size_t event_section = 0;
  uint64_t first_iteration = 0, last_iteration = UINT64_MAX;
  bool full = false;
  uint64_t call_cost = 0;      // of a call without its share in taking sections, in 1/1024 tick
  uint64_t section_ticks = 0;  // spent to make room for events, and for how many
  uint64_t section_events = 0;
};

extern constinit TraceState state;

inline TraceHeader* live_header() {
  return state.header.load(std::memory_order_acquire);
}

// A new section of `bytes` (whole pages) of zeros, its header written and visible to readers. Of the
// limit a part is kept from events, so that sums and tables can go on when events cannot. Under the mutex.
Status try_section(SectionType type, uint16_t thread, uint32_t entry_bytes, size_t bytes, SectionHeader** section);

// The same; null where there is none, of which one line warns, and no more is asked for.
SectionHeader* take_section(SectionType type, uint16_t thread, uint32_t entry_bytes, size_t bytes);

// The same of events, not mapped: its place in the file; 0 where there is none. Its header is then written by write_events.
uint64_t take_unmapped(uint16_t thread, size_t bytes);

// Events for the section at `section`, behind `used` others, and then its header, which counts them. Not under the mutex.
Status write_events(uint64_t section, uint16_t thread, size_t bytes, uint64_t used, const Event* events, uint64_t number);

// Of which one line warns: no more is asked for. Under the mutex.
void become_full(bool of_events, const Status& why);

// The same in private memory, for measurements.
SectionHeader* take_scratch(SectionType type, uint32_t entry_bytes, size_t bytes);

// No more is written to it.
void drop_section(SectionHeader* section);

template <class Entry>
Entry* entries(SectionHeader* section) {
  return reinterpret_cast<Entry*>(section + 1);
}
template <class Entry>
size_t capacity(size_t bytes) {
  return (bytes - sizeof(SectionHeader)) / sizeof(Entry);
}

// One thread writes a word at a time; others, and readers of the file, see whole values.
template <class Word>
inline void put(Word& word, Word value) {
  std::atomic_ref<Word>(word).store(value, std::memory_order_relaxed);
}
template <class Word>
inline Word get(Word& word) {
  return std::atomic_ref<Word>(word).load(std::memory_order_relaxed);
}
template <class Word>
inline void add(Word& word, Word amount) {
  put(word, Word(get(word) + amount));
}

// Words of the header that several threads count in.
inline void count(uint64_t TraceHeader::* word, uint64_t amount = 1) {
  if (TraceHeader* header = live_header()) std::atomic_ref<uint64_t>(header->*word).fetch_add(amount, std::memory_order_relaxed);
}

// Stored after the entries that it counts.
inline void publish(SectionHeader& section, uint64_t used) {
  std::atomic_ref<uint64_t>(section.used).store(used, std::memory_order_release);
}

}  // namespace stretto::trace
