#include "trace/tables.hpp"

#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "base/cacheline.hpp"
#include "trace/memory.hpp"
#include "trace/table.hpp"
#include "trace/tracer.hpp"

namespace stretto::trace {

namespace {

struct Member {
  int32_t world_rank;
};

constinit Table<CommunicatorEntry, 4, 512> communicators(SectionType::communicators);
constinit Table<Member, 4, 4096> members(SectionType::members);
constinit Table<DatatypeEntry, 1, 64> datatypes(SectionType::datatypes);
constinit Table<OperationEntry, 1, 5> operations(SectionType::operations);
constinit Table<ClockEntry, 1, 64> clocks(SectionType::clock);
constinit Table<QueueEntry, 1, 8> queues(SectionType::queues);
constinit Table<NoteEntry, 1, 8> notes(SectionType::notes);
constinit Table<MarkEntry, 4, 1024> marks(SectionType::marks);
static_assert(decltype(communicators)::most < none16 && decltype(datatypes)::most < none16);

constexpr uint32_t most_operations = none8;  // indices 0..254

Status write_names(SectionType type, const char* const* names, uint32_t number) {
  const size_t bytes = round_up(sizeof(SectionHeader) + number * name_bytes, page_bytes);
  SectionHeader* section = nullptr;
  STRETTO_TRY(try_section(type, none16, name_bytes, bytes, &section));
  char* to = entries<char>(section);
  for (uint32_t i = 0; i < number; ++i) snprintf(to + i * name_bytes, name_bytes, "%s", names[i]);
  publish(*section, number);
  return Status::good();
}

// Index of the entry that has these bytes; size() where there is none.
template <class AnyTable, class Entry>
__attribute__((noinline)) uint32_t find_equal(const AnyTable& table, const Entry& entry) {
  uint32_t i = 0;
  while (i < table.size() && memcmp(table.at(i), &entry, sizeof entry) != 0) ++i;
  return i;
}

template <class AnyTable, class Entry>
uint32_t find_or_append(AnyTable& table, const Entry& entry, uint32_t most) {
  const uint32_t found = find_equal(table, entry);
  if (found < table.size()) return found;
  return found < most && table.append(entry) ? found : most;
}

bool same_members(uint32_t first, const int32_t* ranks, uint32_t number) {
  if (uint64_t(first) + number > members.size()) return false;
  for (uint32_t i = 0; i < number; ++i)
    if (members.at(first + i)->world_rank != ranks[i]) return false;
  return true;
}

// Where these members stand already (duplicates of a communicator have the same), else where they are appended now.
bool place_members(const int32_t* ranks, uint32_t number, uint32_t* first) {
  constexpr uint32_t looked_at = 64;
  const uint32_t known = communicators.size();
  for (uint32_t back = 1; back <= std::min(known, looked_at); ++back) {
    const CommunicatorEntry* other = communicators.at(known - back);
    *first = other->first_member;
    if (other->size + other->remote_size == number && same_members(*first, ranks, number)) return true;
  }
  *first = members.size();
  for (uint32_t i = 0; i < number; ++i)
    if (!members.append({ranks[i]})) return false;
  return true;
}

template <size_t size>
void copy_text(char (&to)[size], const char* from) {
  snprintf(to, size, "%s", from ? from : "");
}

void detach_pages(SectionHeader* section, size_t bytes) {
  [[maybe_unused]] const Status ignored = make_private(section, bytes, bytes);
}

}  // namespace

Status write_name_tables(const Tables& tables) {
  STRETTO_TRY(write_names(SectionType::function_names, tables.functions, tables.function_count));
  STRETTO_TRY(write_names(SectionType::reason_names, tables.reasons, tables.reason_count));
  return write_names(SectionType::algorithm_names, tables.algorithms, tables.algorithm_count);
}

bool append_mark(const MarkEntry& mark) {
  return marks.append(mark) != nullptr;
}

void detach_tables() {
  communicators.detach(detach_pages);
  queues.detach(detach_pages);
}

uint16_t add_communicator(const CommunicatorEntry& entry, const int32_t* ranks, uint32_t number) {
  if (!live_header()) return none16;
  const std::lock_guard<std::mutex> lock(state.mutex);
  CommunicatorEntry placed = entry;
  if (place_members(ranks, number, &placed.first_member) && communicators.append(placed))
    return uint16_t(communicators.size() - 1);
  count(&TraceHeader::unnamed);
  return none16;
}

CommunicatorEntry* communicator_entry(uint16_t index) {
  return index < communicators.size() ? communicators.at(index) : nullptr;
}

uint16_t add_datatype(const DatatypeEntry& entry) {
  if (!live_header()) return none16;
  const std::lock_guard<std::mutex> lock(state.mutex);
  DatatypeEntry clean{};  // no bytes after the name's end: equal types shall be equal
  copy_text(clean.name, entry.name);
  clean.size = entry.size;
  clean.extent = entry.extent;
  const uint32_t index = find_or_append(datatypes, clean, decltype(datatypes)::most);
  if (index < decltype(datatypes)::most) return uint16_t(index);
  count(&TraceHeader::unnamed);
  return none16;
}

uint8_t add_operation(const char* name) {
  if (!live_header()) return none8;
  const std::lock_guard<std::mutex> lock(state.mutex);
  OperationEntry entry{};
  copy_text(entry.name, name);
  const uint32_t index = find_or_append(operations, entry, most_operations);
  if (index < most_operations) return uint8_t(index);
  count(&TraceHeader::unnamed);
  return none8;
}

void add_clock(const ClockEntry& entry) {
  if (!live_header()) return;
  const std::lock_guard<std::mutex> lock(state.mutex);
  clocks.append(entry);
}

QueueEntry* add_queue(const char* name, const char* unit, const char* unavailable) {
  if (!live_header()) return nullptr;
  const std::lock_guard<std::mutex> lock(state.mutex);
  QueueEntry entry{};
  copy_text(entry.name, name);
  copy_text(entry.unit, unit);
  copy_text(entry.unavailable, unavailable);
  return queues.append(entry);
}

void add_note(const char* text) {
  if (!live_header()) return;
  const std::lock_guard<std::mutex> lock(state.mutex);
  NoteEntry entry{};
  copy_text(entry.text, text);
  if (find_equal(notes, entry) == notes.size()) notes.append(entry);
}

}  // namespace stretto::trace
