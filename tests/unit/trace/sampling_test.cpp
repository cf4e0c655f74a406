#include "trace/sampling.hpp"

#include <gtest/gtest.h>

#include "unit/trace/trace_reader.hpp"

namespace stretto::trace {
namespace {

using testing::allreduce;
using testing::call;
using testing::Folder;
using testing::in_child;
using testing::options_in;
using testing::tables;
using testing::TraceReader;

uint64_t kept_below(int base, uint64_t end) {
  uint64_t kept = 0;
  for (uint64_t s = 0; s < end; ++s) kept += sampled(base, uint32_t(s));
  return kept;
}

TEST(Sampling, KeepsTheFirstOnesAndHalfAsManyOfEachOctave) {
  EXPECT_EQ(kept_below(12, 4096), 4096u);
  EXPECT_EQ(kept_below(12, 8192), 4096u + 2048);
  EXPECT_EQ(kept_below(12, 16384), 4096u + 2 * 2048);
  EXPECT_EQ(kept_below(12, 1 << 22), 4096u + 10 * 2048);
  EXPECT_EQ(kept_below(4, 1 << 16), 16u + 12 * 8);
  EXPECT_EQ(kept_below(-1, 4096), 0u);
  EXPECT_TRUE(sampled(12, 4096) && !sampled(12, 4097) && sampled(12, 4098));
  EXPECT_TRUE(sampled(12, 0x80000000u) && !sampled(12, 0xffffffffu));
}

TEST(Sampling, ASmallerBaseKeepsASubset) {
  for (uint32_t s = 0; s < 300000; ++s) {
    ASSERT_TRUE(sampled(8, s) || !sampled(4, s)) << s;
    ASSERT_TRUE(sampled(12, s) || !sampled(8, s)) << s;
  }
}

TEST(Sampling, IsBoundedOverAllCommunicators) {
  uint64_t most = 0;
  for (uint32_t c = 0; c <= none16; ++c) most += most_sampled(sampling_base(uint16_t(c)));
  EXPECT_LT(most, 800000u);
  EXPECT_EQ(most_sampled(12), 4096u + 20 * 2048);
  EXPECT_EQ(kept_below(4, uint64_t(1) << 20) + 12 * 8, most_sampled(4));
}

TEST(Sampling, AggregateModeKeepsCollectivesAlone) {
  Folder folder;
  ASSERT_EQ(0, in_child([&] {
              if (!open_trace(options_in(folder, Mode::aggregate), tables).ok()) return 1;
              for (uint32_t i = 0; i < 10000; ++i) {
                call(allreduce(i, 8), i, 1);
                call(allreduce(i, 8, 100), i, 1);
                call(testing::send(1, 8), i, 1);
              }
              return 0;
            }));
  const TraceReader trace(folder);
  EXPECT_EQ(trace.calls(), 30000u);
  EXPECT_EQ(trace.events().size(), kept_below(12, 10000) + kept_below(4, 10000));
  for (const auto& whole : trace.events()) {
    EXPECT_EQ(whole.event.function, 2);
    EXPECT_TRUE(keeps_event(whole.event.communicator, whole.event.sequence));
  }
}

}  // namespace
}  // namespace stretto::trace
