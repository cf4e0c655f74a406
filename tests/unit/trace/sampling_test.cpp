#include "trace/sampling.hpp"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(Sampling, KeepsTheFirstOnesAndAboutHalfAsManyOfEachOctave) {
  EXPECT_EQ(kept_below(12, 4096), 4096u);
  EXPECT_EQ(kept_below(-1, 4096), 0u);
  uint64_t before = 4096;
  for (int octave = 1; octave <= 10; ++octave) {
    const uint64_t kept = kept_below(12, uint64_t(4096) << octave);
    EXPECT_NEAR(double(kept - before), 2048, 5 * 45) << octave;
    before = kept;
  }
}

// Whatever the length of an iteration, each of its collectives is met about equally often.
TEST(Sampling, PrefersNoPlaceInAnIteration) {
  for (uint32_t length : {2u, 3u, 4u, 7u, 8u, 13u, 16u, 21u, 32u, 34u, 55u, 64u}) {
    std::vector<double> met(length);
    double all = 0;
    for (uint32_t s = 4096; s < 1 << 20; ++s)
      if (sampled(12, s)) met[s % length] += 1, all += 1;
    for (uint32_t place = 0; place < length; ++place)
      EXPECT_NEAR(met[place], all / length, 5 * std::sqrt(all / length)) << place << " of " << length;
  }
}

TEST(Sampling, ASmallerBaseKeepsASubset) {
  for (uint32_t s = 0; s < 300000; ++s) {
    ASSERT_TRUE(sampled(8, s) || !sampled(4, s)) << s;
    ASSERT_TRUE(sampled(12, s) || !sampled(8, s)) << s;
  }
}

TEST(Sampling, IsBoundedOverAllCommunicators) {
  uint64_t most = 0;
  for (uint32_t c = 0; c <= none16; ++c) most += mean_sampled(sampling_base(uint16_t(c)));
  EXPECT_LT(most, 800000u);
  EXPECT_EQ(mean_sampled(12), 4096u + 20 * 2048);
  EXPECT_NEAR(double(kept_below(4, uint64_t(1) << 20)) + 12 * 8, double(mean_sampled(4)), 60);
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
