#include "platform/runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace stretto::platform {
namespace {

using List = std::vector<Run>;

// `repeats` times the given runs, so far apart.
List repeated(const List& runs, size_t repeats, size_t distance) {
  List all;
  for (size_t i = 0; i < repeats; ++i)
    for (const Run& run : runs) all.push_back({run.offset + i * distance, run.bytes});
  return all;
}

void expect_pattern(const List& runs, size_t taken, size_t period, size_t distance) {
  const Pattern pattern = pattern_of(runs);
  EXPECT_EQ(pattern.runs, taken);
  EXPECT_EQ(pattern.period, period);
  EXPECT_TRUE(taken == period || pattern.distance == distance) << pattern.distance;
}

TEST(Runs, ARunAloneIsAPattern) {
  expect_pattern({{7, 3}}, 1, 1, 0);
  expect_pattern({{0, 4}, {9, 5}}, 1, 1, 0);
}

TEST(Runs, RepeatAtEqualDistance) {
  expect_pattern(repeated({{5, 4}}, 100, 64), 100, 1, 64);
  expect_pattern(repeated({{0, 4}, {12, 4}}, 50, 40), 100, 2, 40);
  expect_pattern(repeated({{0, 1}, {4, 8}, {16, 2}}, 50, 40), 150, 3, 40);
}

TEST(Runs, APatternEndsWhereLengthOrDistanceChanges) {
  List runs = repeated({{0, 4}}, 10, 16);
  List longer = runs, further = runs;
  longer.push_back({160, 5});
  further.push_back({161, 4});
  expect_pattern(longer, 10, 1, 16);
  expect_pattern(further, 10, 1, 16);
}

TEST(Runs, TheLastRepetitionMayBeCutShort) {
  List runs = repeated({{0, 4}, {12, 4}, {18, 4}}, 20, 40);
  runs.pop_back();
  const Pattern pattern = pattern_of(runs);
  EXPECT_EQ(pattern.runs, 59u);
  EXPECT_EQ(pattern.rows(0), 20u);
  EXPECT_EQ(pattern.rows(1), 20u);
  EXPECT_EQ(pattern.rows(2), 19u);
}

// Whatever the runs, the rows of their patterns are those runs, each once.
TEST(Runs, PatternsHoldEveryRunOnce) {
  std::mt19937 random(17);
  for (int trial = 0; trial < 300; ++trial) {
    List runs;
    const size_t most = 1 + random() % 4;
    for (size_t at = random() % 3, n = random() % 200; runs.size() < n; at += runs.back().bytes + 1 + random() % most)
      runs.push_back({at, 1 + random() % most});
    std::vector<std::pair<size_t, size_t>> wanted, found;
    for (const auto& run : runs) wanted.emplace_back(run.offset, run.bytes);
    for (std::span<const platform::Run> rest = runs; !rest.empty();) {
      const Pattern pattern = pattern_of(rest);
      ASSERT_GE(pattern.runs, pattern.period);
      for (size_t place = 0; place < pattern.period; ++place)
        for (size_t row = 0; row < pattern.rows(place); ++row)
          found.emplace_back(rest[place].offset + row * pattern.distance, rest[place].bytes);
      rest = rest.subspan(pattern.runs);
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, wanted);
  }
}

}  // namespace
}  // namespace stretto::platform
