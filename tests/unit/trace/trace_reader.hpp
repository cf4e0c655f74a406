// Reads a trace file by the words of docs/trace_format.md: from section to section by their lengths, believing `used`.
#pragma once
#include <string.h>

#include <map>
#include <string>
#include <vector>

#include "trace/trace.hpp"
#include "trace/tracer.hpp"
#include "unit/trace/record_reader.hpp"

namespace stretto::trace::testing {

struct Section {
  SectionHeader header;
  size_t offset;  // of the first entry
};

// An event with the high halves that a `wide` one before it held.
struct WholeEvent {
  Event event;
  uint64_t spent, sent, received;
};

class TraceReader {
 public:
  explicit TraceReader(std::vector<char> bytes) : bytes_(std::move(bytes)) {
    if (bytes_.size() < page_bytes) return;
    memcpy(&header, bytes_.data(), sizeof header);
    complete = memcmp(header.magic, "STRETTOT", 8) == 0 && header.version == trace_version;
    walk();
  }
  explicit TraceReader(const Folder& folder) : TraceReader(read_file(folder.files().at(0))) {}

  template <class Entry>
  std::vector<Entry> all(SectionType type, int thread = -1) const {
    std::vector<Entry> found;
    for (const Section& section : sections) {
      if (section.header.type != uint16_t(type) || (thread >= 0 && section.header.thread != thread)) continue;
      for (uint64_t i = 0; i < section.header.used; ++i) {
        Entry entry;
        memcpy(&entry, bytes_.data() + section.offset + i * section.header.entry_bytes, sizeof entry);
        found.push_back(entry);
      }
    }
    return found;
  }

  std::vector<std::string> names(SectionType type) const {
    struct Name {
      char text[40];
    };
    std::vector<std::string> found;
    for (const Name& name : all<Name>(type)) found.emplace_back(name.text);
    return found;
  }

  // A thread's entries in their order: those of its tail stand last, less what is in front of it already.
  std::vector<Event> entries_of_thread(int thread) const {
    std::vector<Event> found = all<Event>(SectionType::events, thread);
    const size_t before = found.size();
    for (const Section& section : sections) {
      if (section.header.type != uint16_t(SectionType::tail) || section.header.thread != thread) continue;
      const std::vector<Event> last = all<Event>(SectionType::tail, thread);
      const size_t twice = before - section.header.first;
      if (twice < last.size()) found.insert(found.end(), last.begin() + ptrdiff_t(twice), last.end());
    }
    return found;
  }
  std::vector<Event> entries_of_events() const {
    std::vector<Event> found;
    for (size_t t = 0; t < all<ThreadEntry>(SectionType::threads).size(); ++t)
      for (const Event& event : entries_of_thread(int(t))) found.push_back(event);
    return found;
  }

  // Those of all threads where thread is -1, thread after thread.
  std::vector<WholeEvent> events(int thread = -1) const {
    std::vector<WholeEvent> found;
    for (int t = thread < 0 ? 0 : thread; t <= (thread < 0 ? int(all<ThreadEntry>(SectionType::threads).size()) : thread); ++t) {
      Event high{};
      for (const Event& event : entries_of_thread(t)) {
        if (event.flags & wide) {
          high = event;
          continue;
        }
        found.push_back({event, uint64_t(high.spent) << 32 | event.spent, uint64_t(high.sent) << 32 | event.sent,
                         uint64_t(high.received) << 32 | event.received});
        high = {};
      }
    }
    return found;
  }

  std::vector<Cell> cells() const { return all<Cell>(SectionType::cells); }
  std::vector<PartnerCell> partners() const { return all<PartnerCell>(SectionType::partners); }
  uint64_t calls() const {
    uint64_t sum = 0;
    for (const Cell& cell : cells()) sum += cell.calls;
    return sum;
  }
  size_t size() const { return bytes_.size(); }

  bool complete = false;
  bool consistent = true;  // every section fits the file and its entries the section; no wide event stands last in one
  TraceHeader header{};
  std::vector<Section> sections;

 private:
  void walk() {
    size_t at = header.header_bytes;
    while (complete && at + sizeof(SectionHeader) <= header.file_bytes) {
      Section section{{}, at + sizeof(SectionHeader)};
      memcpy(&section.header, bytes_.data() + at, sizeof section.header);
      const SectionHeader& h = section.header;
      consistent = consistent && h.magic == section_magic && h.bytes % page_bytes == 0 && h.bytes > 0 &&
                   at + h.bytes <= bytes_.size() && h.used * h.entry_bytes <= h.bytes - sizeof h;
      if (!consistent) return;
      if ((h.type == uint16_t(SectionType::events) || h.type == uint16_t(SectionType::tail)) && h.used > 0) {
        Event last;
        memcpy(&last, bytes_.data() + section.offset + (h.used - 1) * sizeof last, sizeof last);
        consistent = !(last.flags & wide);
      }
      sections.push_back(section);
      at += h.bytes;
    }
    consistent = consistent && at == header.file_bytes;
  }

  std::vector<char> bytes_;
};

inline TraceOptions options_in(const Folder& folder, Mode mode) {
  TraceOptions options;
  options.directory = folder.path.c_str();
  options.job = "job-1";
  options.mode = mode;
  options.event_section = 8192;
  return options;
}

// An Allreduce on communicator 0, as the shim tells of it.
inline CallFacts allreduce(uint32_t sequence, uint64_t bytes, uint16_t communicator = 0) {
  CallFacts facts;
  facts.function = 2;
  facts.communicator = communicator;
  facts.sequence = sequence;
  facts.sent = facts.received = bytes;
  facts.datatype = 0;
  facts.op = 0;
  facts.location = 0;
  facts.collective = true;
  return facts;
}

inline CallFacts send(int32_t partner, uint64_t bytes) {
  CallFacts facts;
  facts.communicator = 0;
  facts.sent = bytes;
  facts.peer = facts.partner = partner;
  facts.tag = 7;
  facts.direction = Direction::sent;
  facts.datatype = 0;
  facts.location = 0xf0;
  return facts;
}

inline void call(const CallFacts& facts, uint64_t begin, uint64_t spent) {
  enter(facts, begin);
  leave(facts, begin, begin + spent);
}

}  // namespace stretto::trace::testing
