#include "trace/trace_state.hpp"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/log.hpp"
#include "trace/memory.hpp"

namespace stretto::trace {

constinit TraceState state;

namespace {

constexpr const char* limit_reached = "the trace has reached its limit";

uint64_t kept_from_events() {
  return std::min(state.limit_bytes / 4, uint64_t(32) << 20);
}

bool is_of_events(SectionType type) {
  return type == SectionType::events || type == SectionType::tail;
}

void write_header(SectionHeader* section, SectionType type, uint16_t thread, uint32_t entry_bytes, size_t bytes) {
  section->type = uint16_t(type);
  section->thread = thread;
  section->entry_bytes = entry_bytes;
  section->bytes = bytes;
  std::atomic_ref<uint32_t>(section->magic).store(section_magic, std::memory_order_release);
}

// Once. One rank speaks of the limit, which all have alike; every one of its disk.
void say_full(bool by_limit, bool of_events, const Status& why) {
  static bool said = false;
  if (said) return;
  said = true;
  const char* rest = of_events ? "summed, but not traced one by one" : "traced in part";
  const TraceHeader* header = live_header();
  if (by_limit) {
    log(header && header->world_rank > 0 ? Level::info : Level::warning,
        "the trace has reached its limit of %llu MiB: later calls are %s (STRETTO_TRACE_MIB)",
        static_cast<unsigned long long>(state.limit_bytes >> 20), rest);
  } else {
    log(Level::warning, "%s (%s): later calls are %s", why.what, strerror(why.detail), rest);
  }
}

bool fits(SectionType type, size_t bytes) {
  return state.file.bytes() + bytes + (is_of_events(type) ? kept_from_events() : 0) <= state.limit_bytes;
}

void publish_length() {
  if (TraceHeader* header = live_header())
    std::atomic_ref<uint64_t>(header->file_bytes).store(state.file.bytes(), std::memory_order_release);
}

}  // namespace

// What the limit keeps from events is still there for sums; a disk that refuses is not asked again.
void become_full(bool of_events, const Status& why) {
  const bool by_limit = why.what == limit_reached;
  state.full_of_events.store(true, std::memory_order_relaxed);
  if (!of_events || !by_limit) state.full = true;
  say_full(by_limit, of_events, why);
}

Status try_section(SectionType type, uint16_t thread, uint32_t entry_bytes, size_t bytes, SectionHeader** section) {
  if (!fits(type, bytes)) return no_memory(limit_reached);
  void* address = nullptr;
  STRETTO_TRY(state.file.grow(bytes, &address));
  *section = static_cast<SectionHeader*>(address);
  write_header(*section, type, thread, entry_bytes, bytes);
  publish_length();
  return Status::good();
}

SectionHeader* take_section(SectionType type, uint16_t thread, uint32_t entry_bytes, size_t bytes) {
  const bool of_events = is_of_events(type);
  if (state.full || (of_events && state.full_of_events.load(std::memory_order_relaxed))) return nullptr;
  SectionHeader* section = nullptr;
  const Status status = try_section(type, thread, entry_bytes, bytes, &section);
  if (!status.ok()) become_full(of_events, status);
  return section;
}

uint64_t take_unmapped(uint16_t thread, size_t bytes) {
  if (state.full_of_events.load(std::memory_order_relaxed)) return 0;
  SectionHeader header{};
  write_header(&header, SectionType::events, thread, sizeof(Event), bytes);
  uint64_t offset = 0;
  const Status status = !fits(SectionType::events, bytes) ? no_memory(limit_reached)
                                                          : state.file.extend(bytes, {0, &header, sizeof header}, &offset);
  if (!status.ok()) {
    become_full(true, status);
    return 0;
  }
  publish_length();
  return offset;
}

Status write_events(uint64_t section, uint16_t thread, size_t bytes, uint64_t used, const Event* events, uint64_t number) {
  SectionHeader header{};
  write_header(&header, SectionType::events, thread, sizeof(Event), bytes);
  header.used = used + number;
  const Piece pieces[] = {{section + sizeof header + used * sizeof(Event), events, number * sizeof(Event)},
                          {section, &header, sizeof header}};
  return state.file.write(pieces);
}

SectionHeader* take_scratch(SectionType type, uint32_t entry_bytes, size_t bytes) {
  void* address = nullptr;
  if (!map_anonymous(bytes, &address).ok()) return nullptr;
  write_header(static_cast<SectionHeader*>(address), type, none16, entry_bytes, bytes);
  return static_cast<SectionHeader*>(address);
}

void drop_section(SectionHeader* section) {
  munmap(section, section->bytes);
}

}  // namespace stretto::trace
