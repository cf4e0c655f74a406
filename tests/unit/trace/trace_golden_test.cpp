// The layout of a trace is frozen: today's code writes, byte for byte, the examples kept in tests/golden/trace_v2, and they
// say what was told. A change of layout needs a new trace_version and new examples; make_trace writes them.
#include <gtest/gtest.h>

#include "unit/trace/trace_examples.hpp"
#include "unit/trace/trace_reader.hpp"

namespace stretto::trace::testing {
namespace {

Truth said_by(const TraceReader& trace) {
  Truth said;
  for (const Cell& c : trace.cells()) {
    if (c.calls == 0) continue;  // since a reset
    Truth::Sum& sum = said.cells[{c.function, c.communicator, c.datatype, c.op, c.location, c.bin, c.outcome}];
    sum = {sum.calls + c.calls, sum.sent + c.sent, sum.received + c.received, sum.ticks + c.ticks, c.first_ticks, c.last_ticks};
  }
  for (const PartnerCell& c : trace.partners()) {
    Truth::Traffic& traffic = said.partners[{c.communicator, c.direction, c.partner}];
    traffic = {traffic.calls + c.calls, traffic.bytes + c.bytes};
  }
  for (const WholeEvent& whole : trace.events()) {
    ++(whole.event.flags & part ? said.parts : said.events);
    said.event_ticks += whole.spent;
    said.event_sent += whole.sent;
    said.event_received += whole.received;
  }
  for (const Event& event : trace.entries_of_events()) said.wide_events += (event.flags & wide) != 0;
  for (const MarkEntry& mark : trace.all<MarkEntry>(SectionType::marks)) said.marks.emplace_back(mark.what, mark.number);
  said.dropped_events = trace.header.dropped_events;
  return said;
}

class GoldenTrace : public ::testing::TestWithParam<Example> {};

TEST_P(GoldenTrace, CurrentCodeWritesTheVersion) {
  Folder folder;
  ASSERT_TRUE(write_example(GetParam(), folder.path));
  for (const char* kind : {".trace", ".json"}) {
    const std::vector<char> written = read_file(folder.path + "/" + GetParam().name + kind);
    const std::vector<char> golden = read_file(std::string(GOLDEN_TRACES) + "/" + GetParam().name + kind);
    EXPECT_TRUE(written == golden) << GetParam().name << kind;
  }
}

TEST_P(GoldenTrace, SaysWhatWasTold) {
  const std::string path = std::string(GOLDEN_TRACES) + "/" + GetParam().name;
  const TraceReader trace(read_file(path + ".trace"));
  ASSERT_TRUE(trace.complete && trace.consistent);
  EXPECT_LT(trace.size(), 200'000u);
  const std::vector<char> told = read_file(path + ".json");
  EXPECT_EQ(said_by(trace).json(GetParam().name + std::string(".trace"), trace.header), std::string(told.begin(), told.end()));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTrace, ::testing::ValuesIn(examples),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace stretto::trace::testing
