#include "platform/parse.hpp"

#include <gtest/gtest.h>

#include <string>

#include "unit/platform/temporary_tree.hpp"

namespace stretto::platform {
namespace {

// Fields 3 to 52 of /proc/PID/stat with the given state, number of threads and start time.
std::string stat_line(const std::string& name, char state, int threads, uint64_t start) {
  std::string line = "1234 (" + name + ") " + state;
  for (int field = 4; field <= 52; ++field) {
    line += ' ';
    line += field == 20 ? std::to_string(threads) : field == 22 ? std::to_string(start) : std::to_string(-field);
  }
  return line + "\n";
}

TEST(ParseStat, FindsStateThreadsAndStart) {
  ProcessStat stat;
  ASSERT_TRUE(parse_stat(stat_line("cat", 'S', 3, 987654321012), &stat));
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.threads, 3u);
  EXPECT_EQ(stat.start, 987654321012u);
}

TEST(ParseStat, NamesMayHoldAnything) {
  for (const char* name : {"", ")", "a) Z (b", "((", "tricky ) R 1 2 3", "two\nlines)"}) {
    ProcessStat stat;
    ASSERT_TRUE(parse_stat(stat_line(name, 'R', 1, 42), &stat)) << name;
    EXPECT_EQ(stat.state, 'R') << name;
    EXPECT_EQ(stat.start, 42u) << name;
  }
}

TEST(ParseStat, RejectsWhatIsCutShort) {
  std::string whole = stat_line("cat", 'S', 1, 7);
  size_t start_field_end = whole.find(" -23");
  ProcessStat stat;
  EXPECT_TRUE(parse_stat(whole.substr(0, start_field_end), &stat));
  for (size_t length = 0; length + 1 < start_field_end; ++length)
    EXPECT_FALSE(parse_stat(whole.substr(0, length), &stat)) << length;
}

TEST(ParseNumber, TakesDigitsAndNothingElse) {
  uint64_t value = 0;
  EXPECT_TRUE(parse_number(" 42\n", &value));
  EXPECT_EQ(value, 42u);
  EXPECT_TRUE(parse_number("18446744073709551615", &value));
  for (const char* bad : {"", "-1", "4x", "18446744073709551616", "max", "4 2"}) EXPECT_FALSE(parse_number(bad, &value)) << bad;
}

TEST(ParseSize, KnowsUnits) {
  EXPECT_EQ(parse_size("48K\n"), 48u << 10);
  EXPECT_EQ(parse_size("32M"), 32u << 20);
  EXPECT_EQ(parse_size("1G"), 1u << 30);
  EXPECT_EQ(parse_size("123"), 123u);
  for (const char* bad : {"", "K", "12T", "-1K", "18446744073709551615K"}) EXPECT_EQ(parse_size(bad), 0u) << bad;
}

TEST(ParseCpuLimits, BothVersions) {
  EXPECT_DOUBLE_EQ(parse_cpu_max("250000 100000\n"), 2.5);
  EXPECT_DOUBLE_EQ(parse_cpu_max("50000 100000\n"), 0.5);
  EXPECT_DOUBLE_EQ(parse_cpu_max("max 100000\n"), 0);
  EXPECT_DOUBLE_EQ(parse_cpu_max(""), 0);
  EXPECT_DOUBLE_EQ(parse_cpu_max("5 0"), 0);
  EXPECT_DOUBLE_EQ(parse_cfs_quota("400000\n", "100000\n"), 4);
  EXPECT_DOUBLE_EQ(parse_cfs_quota("-1\n", "100000\n"), 0);
  EXPECT_DOUBLE_EQ(parse_cfs_quota("", ""), 0);
}

TEST(ParseMemoryLimit, BothVersions) {
  EXPECT_EQ(parse_memory_limit("1073741824\n"), size_t(1) << 30);
  EXPECT_EQ(parse_memory_limit("max\n"), SIZE_MAX);
  EXPECT_EQ(parse_memory_limit("9223372036854771712\n"), SIZE_MAX);
  EXPECT_EQ(parse_memory_limit(""), SIZE_MAX);
}

TEST(ReadText, StopsAtTheBuffer) {
  testing::TemporaryTree tree;
  tree.write("file", "0123456789");
  char small[5], large[32];
  EXPECT_EQ(read_text(tree.path("file").c_str(), small, sizeof small), "0123");
  EXPECT_EQ(read_text(tree.path("file").c_str(), large, sizeof large), "0123456789");
  EXPECT_EQ(read_text(tree.path("none").c_str(), large, sizeof large), "");
  EXPECT_EQ(read_text(tree.path().c_str(), large, sizeof large), "");
}

}  // namespace
}  // namespace stretto::platform
