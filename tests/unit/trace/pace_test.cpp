#include "trace/pace.hpp"

#include <gtest/gtest.h>

#include <random>

namespace stretto::trace {
namespace {

struct Tally {
  uint64_t truth = 0, counted = 0;
  uint32_t timed = 0;

  void call(Pace& pace, uint64_t takes) {
    truth += takes;
    if (!pace.timed()) return;
    ++timed;
    counted += pace.counted(takes);
  }
  double ratio() const { return double(counted) / double(truth); }
};

TEST(Pace, TheFirstCallsAreExact) {
  Pace pace;
  Tally tally;
  for (uint32_t i = 0; i < Pace::steady; ++i) tally.call(pace, 100 + i);
  EXPECT_EQ(tally.timed, Pace::steady);
  EXPECT_EQ(tally.counted, tally.truth);
}

TEST(Pace, LongCallsAreExact) {
  Pace pace;
  Tally tally;
  for (int i = 0; i < 10000; ++i) tally.call(pace, i % 50 == 0 ? 3 * Pace::long_ever : 300);
  EXPECT_EQ(tally.timed, 10000u);
  EXPECT_EQ(tally.counted, tally.truth);
}

TEST(Pace, OfShortCallsOneInABlockIsTimed) {
  Pace pace;
  Tally tally;
  constexpr uint32_t blocks = 1000;
  for (uint32_t i = 0; i < Pace::steady + blocks * Pace::block; ++i) tally.call(pace, 100);
  EXPECT_EQ(tally.timed, Pace::steady + blocks);
  EXPECT_EQ(tally.counted, tally.truth);
}

// A block ends as it began, though a long call in it makes the next ones exact.
TEST(Pace, ALongCallCountsForItsBlock) {
  for (uint32_t place = 0; place < 4 * Pace::block; ++place) {
    Pace pace;
    Tally tally;
    for (uint32_t i = 0; i < Pace::steady + 8 * Pace::block; ++i)
      tally.call(pace, i == Pace::steady + place ? 2 * Pace::long_call : 0);
    const uint64_t once = 2 * Pace::long_call;
    EXPECT_TRUE(tally.counted == 0 || tally.counted == once * Pace::block) << place;
  }
}

TEST(Pace, AnInterruptedCallCountsOnce) {
  Pace pace;
  Tally tally;
  for (uint32_t i = 0; i < Pace::steady; ++i) tally.call(pace, 0);
  while (!pace.timed()) {
  }
  EXPECT_EQ(pace.counted(Pace::long_ever), Pace::long_ever);
}

// Whatever the rhythm, the sum is right on an average.
TEST(Pace, RhythmsAreNotMistaken) {
  for (uint32_t period : {2u, 3u, 7u, 8u, 16u, 64u, 100u}) {
    Pace pace;
    Tally tally;
    for (uint32_t i = 0; i < 400000; ++i) tally.call(pace, i % period == 0 ? 4000 : 100);
    EXPECT_NEAR(tally.ratio(), 1.0, 0.05) << period;
  }
}

// Calls of which some take long, so that exact and sampled times alternate; the mean over many runs is the truth.
TEST(Pace, NoBias) {
  std::mt19937_64 random(7);
  for (double share : {0.001, 0.01, 0.05}) {
    Tally tally;
    Pace pace;
    std::bernoulli_distribution is_long(share);
    for (int i = 0; i < 4'000'000; ++i) tally.call(pace, is_long(random) ? 100'000 : 100 + random() % 300);
    EXPECT_NEAR(tally.ratio(), 1.0, 0.05) << share;
    if (share < 0.002) {
      EXPECT_LT(tally.timed, 1'000'000u);
    }
  }
}

}  // namespace
}  // namespace stretto::trace
