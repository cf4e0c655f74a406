// The tables that describe what calls are about.
#include <gtest/gtest.h>

#include <numeric>

#include "unit/trace/trace_reader.hpp"

namespace stretto::trace {
namespace {

using testing::Folder;
using testing::in_child;
using testing::options_in;
using testing::tables;
using testing::TraceReader;

CommunicatorEntry communicator(const char* name, uint32_t size) {
  CommunicatorEntry entry{};
  entry.identity = 0x1234 + size;
  entry.size = size;
  snprintf(entry.name, sizeof entry.name, "%s", name);
  return entry;
}

DatatypeEntry datatype(const char* name, uint64_t size) {
  DatatypeEntry entry{};
  snprintf(entry.name, sizeof entry.name, "%s", name);
  entry.size = entry.extent = size;
  return entry;
}

template <class Body>
TraceReader traced(const Folder& folder, Body&& body) {
  EXPECT_EQ(0, in_child([&] { return open_trace(options_in(folder, Mode::full), tables).ok() ? body() : 100; }));
  return TraceReader(folder);
}

TEST(TraceTables, CommunicatorsFindTheirMembers) {
  Folder folder;
  const TraceReader trace = traced(folder, [] {
    std::vector<int32_t> world(5000);
    std::iota(world.begin(), world.end(), 0);
    const int32_t few[] = {9, -1, 3};
    if (add_communicator(communicator("MPI_COMM_WORLD", 5000), world.data(), 5000) != 0) return 1;
    if (add_communicator(communicator("few", 3), few, 3) != 1) return 2;
    if (add_communicator(communicator("dup", 5000), world.data(), 5000) != 2) return 3;
    if (communicator_entry(3) || communicator_entry(none16)) return 4;
    communicator_entry(1)->freed_ticks = 77;
    return 0;
  });
  ASSERT_TRUE(trace.consistent);
  const auto communicators = trace.all<CommunicatorEntry>(SectionType::communicators);
  const auto members = trace.all<int32_t>(SectionType::members);
  ASSERT_EQ(communicators.size(), 3u);
  EXPECT_STREQ(communicators[1].name, "few");
  EXPECT_EQ(communicators[1].freed_ticks, 77u);
  EXPECT_EQ(communicators[1].identity, 0x1237u);
  ASSERT_EQ(members.size(), 5003u);  // a duplicate's members are not written again
  EXPECT_EQ(communicators[2].first_member, 0u);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(members[size_t(i)], i);
  EXPECT_EQ(members[communicators[1].first_member], 9);
  EXPECT_EQ(members[communicators[1].first_member + 1], -1);
}

TEST(TraceTables, EqualTypesAndOperationsAreOne) {
  Folder folder;
  const TraceReader trace = traced(folder, [] {
    DatatypeEntry dirty = datatype("MPI_INT", 4);
    dirty.name[20] = 'x';  // after the end of the name
    return add_datatype(datatype("MPI_INT", 4)) == 0 && add_datatype(datatype("derived", 4)) == 1 && add_datatype(dirty) == 0 &&
                   add_operation("MPI_SUM") == 0 && add_operation("user") == 1 && add_operation("MPI_SUM") == 0
               ? 0
               : 1;
  });
  EXPECT_EQ(trace.all<DatatypeEntry>(SectionType::datatypes).size(), 2u);
  EXPECT_EQ(trace.all<OperationEntry>(SectionType::operations).size(), 2u);
  EXPECT_STREQ(trace.all<OperationEntry>(SectionType::operations)[1].name, "user");
}

TEST(TraceTables, FullOnesAreCounted) {
  Folder folder;
  const TraceReader trace = traced(folder, [] {
    uint8_t operation = 0;
    for (int i = 0; i < 300; ++i) operation = add_operation(("op" + std::to_string(i)).c_str());
    if (operation != none8 || add_operation("op254") != 254) return 1;
    const int32_t self = 0;
    uint16_t index = 0;
    for (int i = 0; i < 66000; ++i) index = add_communicator(communicator("self", 1), &self, 1);
    return index == none16 ? 0 : 2;
  });
  ASSERT_TRUE(trace.consistent);
  EXPECT_EQ(trace.all<OperationEntry>(SectionType::operations).size(), 255u);
  const size_t communicators = trace.all<CommunicatorEntry>(SectionType::communicators).size();
  EXPECT_GT(communicators, 60000u);
  EXPECT_EQ(trace.header.unnamed, 45u + 66000 - communicators);
  EXPECT_EQ(trace.all<int32_t>(SectionType::members).size(), 1u);
}

TEST(TraceTables, ClocksQueuesAndNotes) {
  Folder folder;
  const TraceReader trace = traced(folder, [] {
    add_clock({10, 20, 3, 0, 1});
    QueueEntry* queue = add_queue("unexpected", "messages", "");
    if (!queue || !add_queue("posted", "messages", "this MPI has none")) return 1;
    queue->samples = 2;
    queue->sum = 3.5;
    add_note("no clock");
    add_note("no clock");
    add_note(std::string(500, 'n').c_str());
    return 0;
  });
  ASSERT_EQ(trace.all<ClockEntry>(SectionType::clock).size(), 1u);
  EXPECT_EQ(trace.all<ClockEntry>(SectionType::clock)[0].reference_ns, 20u);
  const auto queues = trace.all<QueueEntry>(SectionType::queues);
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0].sum, 3.5);
  EXPECT_STREQ(queues[1].unavailable, "this MPI has none");
  const auto notes = trace.all<NoteEntry>(SectionType::notes);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(strlen(notes[1].text), 255u);
}

}  // namespace
}  // namespace stretto::trace
