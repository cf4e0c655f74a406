// What is told to the tracer is what a reader of the file finds.
#include "trace/tracer.hpp"

#include <gtest/gtest.h>

#include "trace/sums.hpp"
#include "unit/trace/trace_reader.hpp"

namespace stretto::trace {
namespace {

using testing::allreduce;
using testing::call;
using testing::Folder;
using testing::in_child;
using testing::options_in;
using testing::send;
using testing::tables;
using testing::TraceReader;
using testing::WholeEvent;

// The trace of a child that opens it, runs `body` and exits.
template <class Body>
TraceReader traced(const Folder& folder, const TraceOptions& options, Body&& body) {
  EXPECT_EQ(0, in_child([&] {
              if (!open_trace(options, tables).ok()) return 1;
              body();
              return 0;
            }));
  return TraceReader(folder);
}

TEST(Tracer, WritesHeaderAndNames) {
  Folder folder;
  TraceOptions options = options_in(folder, Mode::full);
  options.suffix = ".nccl";
  const TraceReader trace = traced(folder, options, [] {
    trace_header()->world_rank = 3;
    calibrate_trace();
  });
  EXPECT_NE(folder.files().at(0).find(".nccl.trace"), std::string::npos);
  ASSERT_TRUE(trace.complete && trace.consistent);
  EXPECT_EQ(trace.header.header_bytes, 4096u);
  EXPECT_EQ(trace.header.mode, 2u);
  EXPECT_EQ(trace.header.stage, 0u);
  EXPECT_EQ(trace.header.world_rank, 3);
  EXPECT_EQ(trace.header.node, -1);
  EXPECT_GT(trace.header.pid, 0);
  EXPECT_GT(trace.header.last_ticks, trace.header.start_ticks);
  EXPECT_GT(trace.header.last_ns, trace.header.start_ns);
  EXPECT_GT(trace.header.start_realtime_ns, uint64_t(1) << 60);
  EXPECT_GT(trace.header.event_cost_ticks, 0u);
  EXPECT_EQ(trace.header.limit_bytes, uint64_t(512) << 20);
  EXPECT_EQ(trace.header.file_bytes, trace.size());
  EXPECT_STREQ(trace.header.job, "job-1");
  EXPECT_NE(trace.header.host[0], '\0');
  EXPECT_EQ(trace.names(SectionType::function_names), (std::vector<std::string>{"MPI_Send", "MPI_Recv", "MPI_Allreduce"}));
  EXPECT_EQ(trace.names(SectionType::reason_names), (std::vector<std::string>{"none", "size"}));
  EXPECT_EQ(trace.names(SectionType::algorithm_names), (std::vector<std::string>{"flat", "tree"}));
  EXPECT_TRUE(trace.events().empty());  // the cost is not measured into the file
  EXPECT_TRUE(trace.cells().empty());
}

TEST(Tracer, WritesEventsAsTold) {
  Folder folder;
  const TraceReader trace = traced(folder, options_in(folder, Mode::full), [] {
    CallFacts facts = send(5, 4096);
    facts.request = 9;
    facts.partitions = 3;
    facts.outcome = 130;
    facts.op = 2;
    facts.flags = any_tag | failed;
    call(facts, 1000, 50);
    CallFacts received = allreduce(77, 8);
    received.received = 16;
    call(received, 2000, 60);
    CallFacts piece = send(1, 12);
    piece.request = 4;
    add_part(piece, 2010, 2050);
  });
  const std::vector<WholeEvent> events = trace.events();
  ASSERT_EQ(events.size(), 3u);
  const Event& first = events[0].event;
  EXPECT_EQ(first.begin, 1000u);
  EXPECT_EQ(first.spent, 50u);
  EXPECT_EQ(first.function, 0);
  EXPECT_EQ(first.communicator, 0);
  EXPECT_EQ(first.sequence, 0u);
  EXPECT_EQ(first.peer, 5);
  EXPECT_EQ(first.tag, 7);
  EXPECT_EQ(first.request, 9u);
  EXPECT_EQ(first.sent, 4096u);
  EXPECT_EQ(first.received, 0u);
  EXPECT_EQ(first.datatype, 0);
  EXPECT_EQ(first.op, 2);
  EXPECT_EQ(first.outcome, 130);
  EXPECT_EQ(first.location, 0xf0);
  EXPECT_EQ(first.flags, any_tag | failed);
  EXPECT_EQ(first.partitions, 3);
  EXPECT_EQ(events[1].event.sequence, 77u);
  EXPECT_EQ(events[1].event.sent, 8u);
  EXPECT_EQ(events[1].event.received, 16u);
  EXPECT_EQ(events[2].event.flags, part);
  EXPECT_EQ(events[2].event.request, 4u);
  EXPECT_EQ(events[2].event.begin, 2010u);
  EXPECT_EQ(events[2].spent, 40u);
}

TEST(Tracer, WideValuesStandInAnEventBefore) {
  Folder folder;
  const uint64_t many = (uint64_t(3) << 32) + 5;
  const TraceReader trace = traced(folder, options_in(folder, Mode::full), [&] {
    for (uint32_t i = 0; i < 1000; ++i) {  // over several sections, at even and odd places
      call(allreduce(2 * i, i % 3 ? 8 : many), 1000, i % 5 ? 10 : many);
      call(allreduce(2 * i + 1, 8), 1000, 10);
    }
  });
  const std::vector<WholeEvent> events = trace.events();
  ASSERT_EQ(events.size(), 2000u);
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(events[2 * i].sent, i % 3 ? 8 : many);
    EXPECT_EQ(events[2 * i].received, i % 3 ? 8 : many);
    EXPECT_EQ(events[2 * i].spent, i % 5 ? 10 : many);
    EXPECT_EQ(events[2 * i].event.sequence, 2 * i);
    EXPECT_EQ(events[2 * i + 1].sent, 8u);
  }
  EXPECT_TRUE(trace.consistent);
}

TEST(Tracer, GrowsBySectionsAndKeepsTheOrder) {
  Folder folder;
  constexpr uint32_t calls = 20000;
  const TraceReader trace = traced(folder, options_in(folder, Mode::full), [] {
    for (uint32_t i = 0; i < calls; ++i) call(allreduce(i, i), 1000 + i, 1);
  });
  ASSERT_TRUE(trace.consistent);
  const std::vector<WholeEvent> events = trace.events(0);
  ASSERT_EQ(events.size(), calls);
  for (uint32_t i = 0; i < calls; ++i) ASSERT_EQ(events[i].event.sequence, i);
  EXPECT_GT(trace.sections.size(), calls * sizeof(Event) / 8192);
  EXPECT_EQ(trace.header.dropped_events, 0u);
  EXPECT_EQ(trace.calls(), calls);
}

TEST(Tracer, SumsAgreeWithTheirKeys) {
  Folder folder;
  const TraceReader trace = traced(folder, options_in(folder, Mode::aggregate), [] {
    for (uint32_t i = 0; i < 100; ++i) call(allreduce(i, 8), 1000 + 10 * i, 5);
    for (uint32_t i = 0; i < 50; ++i) call(allreduce(100 + i, 7), 5000 + i, 2);  // the bin (4, 8] too
    call(allreduce(150, 9), 6000, 1);
    CallFacts accelerated = allreduce(151, 8);
    accelerated.outcome = 1;
    call(accelerated, 6100, 1);
    call(allreduce(0, 8, 1), 6200, 1);
    for (int i = 0; i < 5; ++i) call(send(4, 100), 7000, 3);
  });
  const std::vector<Cell> cells = trace.cells();
  ASSERT_EQ(cells.size(), 5u);
  EXPECT_EQ(cells[0].function, 2);
  EXPECT_EQ(cells[0].bin, 4);
  EXPECT_EQ(cells[0].calls, 150u);
  EXPECT_EQ(cells[0].sent, 100u * 8 + 50 * 7);
  EXPECT_EQ(cells[0].received, cells[0].sent);
  EXPECT_EQ(cells[0].ticks, 100u * 5 + 50 * 2);
  EXPECT_EQ(cells[0].first_ticks, 1000u);
  EXPECT_EQ(cells[0].last_ticks, 5049u);
  EXPECT_EQ(cells[1].bin, 5);
  EXPECT_EQ(cells[2].outcome, 1);
  EXPECT_EQ(cells[3].communicator, 1);
  EXPECT_EQ(cells[4].function, 0);
  EXPECT_EQ(cells[4].location, 0xf0);
  EXPECT_EQ(cells[4].op, none8);
}

TEST(Tracer, PartnersAreSummedForCallsAndParts) {
  Folder folder;
  const TraceReader trace = traced(folder, options_in(folder, Mode::aggregate), [] {
    for (int i = 0; i < 10; ++i) call(send(i % 2, 100), 1000, 3);
    CallFacts got = send(1, 0);
    got.direction = Direction::received;
    got.received = 40;
    add_part(got, 1000, 1001);
  });
  const std::vector<PartnerCell> partners = trace.partners();
  ASSERT_EQ(partners.size(), 3u);
  EXPECT_EQ(partners[0].partner, 0);
  EXPECT_EQ(partners[0].direction, uint16_t(Direction::sent));
  EXPECT_EQ(partners[0].calls, 5u);
  EXPECT_EQ(partners[0].bytes, 500u);
  EXPECT_EQ(partners[2].partner, 1);
  EXPECT_EQ(partners[2].direction, uint16_t(Direction::received));
  EXPECT_EQ(partners[2].bytes, 40u);
  EXPECT_EQ(trace.calls(), 10u);  // a part is no call of its own
  EXPECT_TRUE(trace.events().empty());
}

TEST(Tracer, ManyKeysHaveManyCells) {
  Folder folder;
  constexpr uint32_t keys = 20000;
  const TraceReader trace = traced(folder, options_in(folder, Mode::aggregate), [] {
    for (int round = 0; round < 3; ++round)
      for (uint32_t i = 0; i < keys; ++i) {
        CallFacts facts = send(int32_t(i), 64);
        facts.communicator = uint16_t(i);
        call(facts, 10, 1);
      }
  });
  ASSERT_TRUE(trace.consistent);
  ASSERT_EQ(trace.cells().size(), keys);
  ASSERT_EQ(trace.partners().size(), keys);
  for (const Cell& cell : trace.cells()) ASSERT_EQ(cell.calls, 3u);
  for (const PartnerCell& cell : trace.partners()) ASSERT_EQ(cell.bytes, 192u);
  EXPECT_EQ(trace.header.dropped_cells, 0u);
}

TEST(Tracer, CellsThatFindNoRoomAreCounted) {
  Folder folder;
  constexpr uint32_t communicators = 60000;
  const TraceReader trace = traced(folder, options_in(folder, Mode::aggregate), [] {
    for (uint32_t bytes : {1, 2, 4})
      for (uint32_t c = 0; c < communicators; ++c) call(send(0, bytes), 10, 1), call(allreduce(c, bytes, uint16_t(c)), 10, 1);
  });
  EXPECT_GT(trace.header.dropped_cells, 0u);
  EXPECT_EQ(trace.calls() + trace.header.dropped_cells, 6u * communicators);
  EXPECT_LT(trace.size(), size_t(64) << 20);
}

TEST(Tracer, PartnersThatFindNoRoomAreCounted) {
  Folder folder;
  constexpr uint32_t partners = 300000;
  const TraceReader trace = traced(folder, options_in(folder, Mode::aggregate), [] {
    for (uint32_t i = 0; i < partners; ++i) call(send(int32_t(i), 8), 10, 1);
  });
  EXPECT_EQ(trace.calls(), partners);
  EXPECT_GT(trace.header.dropped_cells, 0u);
  EXPECT_EQ(trace.partners().size() + trace.header.dropped_cells, partners);
}

TEST(Tracer, SaysWhichCallAThreadIsIn) {
  Folder folder;
  const TraceReader trace = traced(folder, options_in(folder, Mode::aggregate), [] {
    call(allreduce(0, 8), 1000, 3);
    enter(allreduce(1, 8), 2000);
  });
  const std::vector<ThreadEntry> threads = trace.all<ThreadEntry>(SectionType::threads);
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].function, 2);
  EXPECT_EQ(threads[0].communicator, 0);
  EXPECT_EQ(threads[0].sequence, 1u);
  EXPECT_EQ(threads[0].begin_ticks, 2000u);
  EXPECT_EQ(threads[0].events, 1u);
  EXPECT_GT(threads[0].tid, 0u);
  EXPECT_NE(threads[0].name[0], '\0');
}

TEST(Tracer, IterationsLimitEventsButNotSums) {
  Folder folder;
  TraceOptions options = options_in(folder, Mode::full);
  options.iterations = {2, 3};
  const TraceReader trace = traced(folder, options, [] {
    uint32_t sequence = 0;
    call(allreduce(sequence++, 8), 1, 1);
    for (uint32_t iteration = 0; iteration < 6; ++iteration) {
      mark(3, iteration);
      for (int i = 0; i < 10; ++i) call(allreduce(sequence++, 8), 1, 1);
    }
  });
  EXPECT_EQ(trace.calls(), 61u);
  const std::vector<WholeEvent> events = trace.events();
  ASSERT_EQ(events.size(), 20u);
  EXPECT_EQ(events.front().event.sequence, 21u);
  EXPECT_EQ(events.back().event.sequence, 40u);
  const std::vector<MarkEntry> marks = trace.all<MarkEntry>(SectionType::marks);
  ASSERT_EQ(marks.size(), 6u);
  EXPECT_EQ(marks[5].what, 3u);
  EXPECT_EQ(marks[5].number, 5u);
  EXPECT_GE(marks[5].ticks, marks[0].ticks);
}

TEST(Tracer, SwitchingAndResettingLeaveMarks) {
  Folder folder;
  const TraceReader trace = traced(folder, options_in(folder, Mode::full), [] {
    call(allreduce(0, 8), 1, 1);
    switch_recording(false);
    if (recording != Mode::off) abort();
    switch_recording(false);  // is off already
    switch_recording(true);
    if (recording != Mode::full) abort();
    reset_sums();
    call(allreduce(1, 8), 2, 7);
    call(send(1, 8), 3, 1);
  });
  std::vector<uint32_t> what;
  for (const MarkEntry& mark : trace.all<MarkEntry>(SectionType::marks)) what.push_back(mark.what);
  EXPECT_EQ(what, (std::vector<uint32_t>{0, 1, 2}));
  ASSERT_EQ(trace.cells().size(), 2u);
  EXPECT_EQ(trace.cells()[0].calls, 1u);
  EXPECT_EQ(trace.cells()[0].ticks, 7u);
  EXPECT_EQ(trace.cells()[0].first_ticks, 2u);
  EXPECT_EQ(trace.events().size(), 3u);
}

TEST(Tracer, OpeningFailsWithAReason) {
  Folder folder;
  EXPECT_EQ(0, in_child([&] {
              TraceOptions options = options_in(folder, Mode::full);
              options.directory = "/nonexistent/folder";
              const Status status = open_trace(options, tables);
              if (status.code != Code::refused || status.detail != ENOENT || trace_header()) return 1;
              options = options_in(folder, Mode::full);
              options.limit_bytes = 0;
              if (open_trace(options, tables).code != Code::no_memory) return 2;
              options.limit_bytes = 8192;  // not even the names
              if (open_trace(options, tables).code != Code::no_memory || recording != Mode::off) return 3;
              call(allreduce(0, 8), 1, 1);  // harmless
              mark(3, 0);
              add_note("unheard");
              if (!folder.files().empty()) return 4;
              if (!open_trace(options_in(folder, Mode::full), tables).ok()) return 5;
              return open_trace(options_in(folder, Mode::full), tables).code == Code::invalid ? 0 : 6;
            }));
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(SizeBin, IsHalfOpenFromAbove) {
  EXPECT_EQ(size_bin(0), 0);
  EXPECT_EQ(size_bin(1), 1);
  EXPECT_EQ(size_bin(2), 2);
  for (int n = 3; n < 64; ++n) {
    EXPECT_EQ(size_bin((uint64_t(1) << (n - 2)) + 1), n);
    EXPECT_EQ(size_bin(uint64_t(1) << (n - 1)), n);
  }
  EXPECT_EQ(size_bin(UINT64_MAX), 65);
}

}  // namespace
}  // namespace stretto::trace
