// docs/trace_format.md says where the fields of trace.hpp lie.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "trace/trace.hpp"

namespace stretto::trace {
namespace {

struct Row {
  size_t offset, bytes;
  std::string field;
  bool operator==(const Row&) const = default;
};

// "u32" and "char[64]" in bytes.
size_t bytes_of(const std::string& type) {
  const size_t bracket = type.find('[');
  const std::string element = type.substr(0, bracket);
  const size_t number = bracket == std::string::npos ? 1 : std::stoul(type.substr(bracket + 1));
  return number * (element == "char" ? 1 : std::stoul(element.substr(1)) / 8);
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The rows of the first table with offsets under the heading.
std::vector<Row> documented(const std::string& heading) {
  std::ifstream file(TRACE_DOCUMENT);
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## " + heading;
    if (!inside || !line.starts_with("| ") || !isdigit(line[2])) {
      if (!rows.empty()) break;
      continue;
    }
    std::istringstream cells(line.substr(1));
    std::string offset, type, field;
    std::getline(std::getline(std::getline(cells, offset, '|'), type, '|'), field, '|');
    rows.push_back({std::stoul(offset), bytes_of(trimmed(type)), trimmed(field)});
  }
  return rows;
}

void expect_rows(const std::string& heading, const std::vector<Row>& fields) {
  const std::vector<Row> rows = documented(heading);
  ASSERT_EQ(rows.size(), fields.size()) << heading;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].field, fields[i].field) << heading;
    EXPECT_EQ(rows[i].offset, fields[i].offset) << heading << "." << fields[i].field;
    EXPECT_EQ(rows[i].bytes, fields[i].bytes) << heading << "." << fields[i].field;
  }
}

#define FIELD(type, field)                             \
  Row {                                                \
    offsetof(type, field), sizeof(type::field), #field \
  }

TEST(TraceLayout, HeaderIsAsDocumented) {
  using T = TraceHeader;
  expect_rows("Header", {FIELD(T, magic),
                         FIELD(T, version),
                         FIELD(T, header_bytes),
                         FIELD(T, mode),
                         FIELD(T, stage),
                         FIELD(T, world_rank),
                         FIELD(T, world_size),
                         FIELD(T, pid),
                         FIELD(T, node),
                         FIELD(T, start_ticks),
                         FIELD(T, start_ns),
                         FIELD(T, last_ticks),
                         FIELD(T, last_ns),
                         FIELD(T, start_realtime_ns),
                         FIELD(T, init_ticks),
                         FIELD(T, finalize_ticks),
                         FIELD(T, limit_bytes),
                         FIELD(T, dropped_events),
                         FIELD(T, dropped_cells),
                         FIELD(T, unnamed),
                         FIELD(T, untracked_requests),
                         FIELD(T, event_cost_ticks),
                         FIELD(T, file_bytes),
                         FIELD(T, library),
                         FIELD(T, host),
                         FIELD(T, job),
                         FIELD(T, clock),
                         FIELD(T, cpus),
                         FIELD(T, clock_cost_ticks)});
}

TEST(TraceLayout, SectionHeaderIsAsDocumented) {
  using T = SectionHeader;
  expect_rows("SectionHeader", {FIELD(T, magic), FIELD(T, type), FIELD(T, thread), FIELD(T, entry_bytes), FIELD(T, reserved),
                                FIELD(T, bytes), FIELD(T, used), FIELD(T, first), FIELD(T, padding)});
}

TEST(TraceLayout, TableEntriesAreAsDocumented) {
  expect_rows("DatatypeEntry", {FIELD(DatatypeEntry, name), FIELD(DatatypeEntry, size), FIELD(DatatypeEntry, extent)});
  expect_rows("OperationEntry", {FIELD(OperationEntry, name)});
  using C = CommunicatorEntry;
  expect_rows("CommunicatorEntry", {FIELD(C, identity), FIELD(C, parent), FIELD(C, created_ticks), FIELD(C, freed_ticks),
                                    FIELD(C, size), FIELD(C, rank), FIELD(C, remote_size), FIELD(C, nodes),
                                    FIELD(C, first_member), FIELD(C, collectives), FIELD(C, name)});
  using T = ThreadEntry;
  expect_rows("ThreadEntry",
              {FIELD(T, tid), FIELD(T, function), FIELD(T, communicator), FIELD(T, begin_ticks), FIELD(T, sequence),
               FIELD(T, peer), FIELD(T, events), FIELD(T, name), FIELD(T, untimed), FIELD(T, padding)});
  using K = ClockEntry;
  expect_rows("ClockEntry", {FIELD(K, ticks), FIELD(K, reference_ns), FIELD(K, error_ns), FIELD(K, via), FIELD(K, at)});
  using Q = QueueEntry;
  expect_rows("QueueEntry", {FIELD(Q, name), FIELD(Q, samples), FIELD(Q, sum), FIELD(Q, least), FIELD(Q, most), FIELD(Q, unit),
                             FIELD(Q, unavailable)});
  expect_rows("NoteEntry", {FIELD(NoteEntry, text)});
  expect_rows("MarkEntry", {FIELD(MarkEntry, ticks), FIELD(MarkEntry, what), FIELD(MarkEntry, number)});
}

TEST(TraceLayout, SumsAndEventsAreAsDocumented) {
  using C = Cell;
  expect_rows("Cell", {FIELD(C, function), FIELD(C, communicator), FIELD(C, datatype), FIELD(C, op), FIELD(C, location),
                       FIELD(C, bin), FIELD(C, outcome), FIELD(C, reserved), FIELD(C, calls), FIELD(C, sent), FIELD(C, received),
                       FIELD(C, ticks), FIELD(C, first_ticks), FIELD(C, last_ticks)});
  using P = PartnerCell;
  expect_rows("PartnerCell", {FIELD(P, communicator), FIELD(P, direction), FIELD(P, partner), FIELD(P, calls), FIELD(P, bytes),
                              FIELD(P, reserved)});
  using E = Event;
  expect_rows("Event", {FIELD(E, begin), FIELD(E, spent), FIELD(E, function), FIELD(E, communicator), FIELD(E, sequence),
                        FIELD(E, peer), FIELD(E, tag), FIELD(E, request), FIELD(E, sent), FIELD(E, received), FIELD(E, datatype),
                        FIELD(E, op), FIELD(E, outcome), FIELD(E, location), FIELD(E, flags), FIELD(E, partitions)});
}

}  // namespace
}  // namespace stretto::trace
