#include "bench/arrival.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stretto::bench {
namespace {

std::vector<double> delays(const Pattern& pattern, uint64_t call, int ranks) {
  std::vector<double> all(static_cast<size_t>(ranks));
  delays_of(pattern, call, ranks, all.data());
  return all;
}

std::vector<double> shape(const char* name, int ranks = 4) {
  Pattern pattern;
  EXPECT_TRUE(parse_shape(name, &pattern)) << name;
  return delays(pattern, 0, ranks);
}

using Delays = std::vector<double>;

TEST(Arrival, ShapesAreWhatTheyAreCalled) {
  EXPECT_EQ(shape("balanced"), (Delays{0, 0, 0, 0}));
  EXPECT_EQ(shape("ascending", 5), (Delays{0, .25, .5, .75, 1}));
  EXPECT_EQ(shape("descending", 5), (Delays{1, .75, .5, .25, 0}));
  EXPECT_EQ(shape("first-delayed"), (Delays{1, 0, 0, 0}));
  EXPECT_EQ(shape("last-delayed"), (Delays{0, 0, 0, 1}));
  EXPECT_EQ(shape("3-late"), (Delays{0, 1, 1, 1}));
  EXPECT_EQ(shape("half-late"), (Delays{0, 0, 1, 1}));
  EXPECT_EQ(shape("half-late", 1), (Delays{1}));
}

// The last one, or another one each time.
TEST(Arrival, NodesComeLateAsAWhole) {
  const int node_of[] = {0, 1, 2, 2, 1};
  Pattern pattern;
  EXPECT_TRUE(parse_shape("node-late", &pattern));
  pattern.node_of = node_of;
  pattern.nodes = 3;
  EXPECT_EQ(delays(pattern, 0, 5), (Delays{0, 0, 1, 1, 0}));
  pattern.permuted = true;
  const std::vector<Delays> possible = {{1, 0, 0, 0, 0}, {0, 1, 0, 0, 1}, {0, 0, 1, 1, 0}};
  std::vector<int> seen(3);
  for (uint64_t call = 0; call < 60; ++call) {
    const auto place = std::find(possible.begin(), possible.end(), delays(pattern, call, 5));
    ASSERT_NE(place, possible.end());
    ++seen[size_t(place - possible.begin())];
  }
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 5);
}

TEST(Arrival, UnknownShapesAreRefused) {
  Pattern pattern;
  for (const char* wrong : {"", "late", "0-late", "-1-late", "3-lates", "k-late", "Balanced"})
    EXPECT_FALSE(parse_shape(wrong, &pattern)) << wrong;
}

// Between 0 and 1, another one each call, the same on every rank and in every run of the same seed.
TEST(Arrival, RandomDelaysAreUniformAndRepeatable) {
  Pattern pattern, same, other;
  pattern.shape = same.shape = other.shape = Shape::random;
  other.seed = 2;
  double sum = 0;
  for (uint64_t call = 0; call < 1000; ++call) {
    const Delays drawn = delays(pattern, call, 7);
    for (double delay : drawn) {
      EXPECT_GE(delay, 0);
      EXPECT_LT(delay, 1);
      sum += delay;
    }
    EXPECT_EQ(drawn, delays(same, call, 7));
    EXPECT_NE(drawn, delays(other, call, 7));
    EXPECT_NE(drawn, delays(pattern, call + 1, 7));
  }
  EXPECT_NEAR(sum / 7000, 0.5, 0.02);
}

TEST(Arrival, PermutedRanksAreLateInTurn) {
  Pattern pattern;
  ASSERT_TRUE(parse_shape("last-delayed", &pattern));
  pattern.permuted = true;
  int late[5] = {};
  for (uint64_t call = 0; call < 1000; ++call) {
    const Delays all = delays(pattern, call, 5);
    EXPECT_EQ(std::count(all.begin(), all.end(), 1.0), 1);
    ++late[std::find(all.begin(), all.end(), 1.0) - all.begin()];
  }
  for (int times : late) EXPECT_NEAR(times, 200, 60);
}

std::string file_with(const char* text) {
  char name[] = "/tmp/stretto-test-XXXXXX";
  const int fd = mkstemp(name);
  EXPECT_EQ(write(fd, text, strlen(text)), ssize_t(strlen(text)));
  close(fd);
  return name;
}

TEST(Arrival, RecordedCallsAreReplayedInTurn) {
  Pattern pattern;
  pattern.shape = Shape::replay;
  const std::string file = file_with("# ns\n0 100 20\n5 0 1e3\n");
  ASSERT_EQ(read_recorded(file.c_str(), 3, &pattern), nullptr);
  unlink(file.c_str());
  EXPECT_EQ(pattern.rows, 2u);
  EXPECT_EQ(delays(pattern, 0, 3), (Delays{0, 100, 20}));
  EXPECT_EQ(delays(pattern, 1, 3), (Delays{5, 0, 1000}));
  EXPECT_EQ(delays(pattern, 2, 3), (Delays{0, 100, 20}));
}

TEST(Arrival, ManyRecordedCallsAreKept) {
  std::string text;
  for (int call = 0; call < 1000; ++call) text += std::to_string(call) + " 0\n";
  Pattern pattern;
  pattern.shape = Shape::replay;
  const std::string file = file_with(text.c_str());
  ASSERT_EQ(read_recorded(file.c_str(), 2, &pattern), nullptr);
  unlink(file.c_str());
  for (uint64_t call = 0; call < 1000; ++call) EXPECT_EQ(delays(pattern, call, 2), (Delays{double(call), 0}));
}

TEST(Arrival, WrongRecordingsAreRefused) {
  for (const char* wrong : {"", "1\n", "1 2 3\n", "1 -2\n", "1 x\n", "0 nan\n", "0 1e300\n"}) {
    Pattern pattern;
    const std::string file = file_with(wrong);
    EXPECT_NE(read_recorded(file.c_str(), 2, &pattern), nullptr) << wrong;
    unlink(file.c_str());
  }
  Pattern pattern;
  EXPECT_NE(read_recorded("/nonexistent", 2, &pattern), nullptr);
}

}  // namespace
}  // namespace stretto::bench
