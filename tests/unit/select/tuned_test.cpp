#include "select/tuned.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "select/selector.hpp"

namespace stretto::select {
namespace {

const std::string header = "tuned build=00000000000000a1 machine=00000000000000b2 mpi=00000000000000c3\n";

Status parse(const std::string& text, Rules* rules) {
  return parse_rules(text.data(), text.size(), rules);
}

TEST(Tuned, HeaderIsReadAndWritten) {
  Rules rules;
  ASSERT_TRUE(parse("# comment\n\n" + header + "barrier flat\n", &rules).ok());
  EXPECT_TRUE(rules.tuned);
  EXPECT_EQ(rules.build, 0xa1u);
  EXPECT_EQ(rules.machine, 0xb2u);
  EXPECT_EQ(rules.mpi, 0xc3u);
  EXPECT_EQ(rules.rows[0].line, 4);
  char text[128];
  write_header({0xa1, 0xb2, 0xc3}, text);
  EXPECT_EQ(std::string(text) + "\n", header);
}

TEST(Tuned, RulesWithoutHeaderAreNobodys) {
  Rules rules;
  ASSERT_TRUE(parse("barrier flat\n", &rules).ok());
  EXPECT_FALSE(rules.tuned);
  EXPECT_TRUE(fits(rules, {1, 2, 3}).ok());
}

TEST(Tuned, WrongHeadersAreRefusedWithTheirLine) {
  for (const char* wrong : {"tuned", "tuned build=a1 machine=b2 mpi=c3", "tuned machine=00000000000000b2 build=00000000000000a1",
                            "tuned build=00000000000000a1 machine=00000000000000b2 mpi=00000000000000C3",
                            "tuned build=00000000000000a1 machine=00000000000000b2 mpi=00000000000000c3 more"}) {
    Rules rules;
    const Status status = parse(std::string("\n") + wrong + "\nbarrier flat\n", &rules);
    EXPECT_EQ(status.code, Code::invalid) << wrong;
    EXPECT_EQ(status.detail, 2) << wrong;
  }
  Rules rules;
  EXPECT_EQ(parse(header + header + "barrier flat\n", &rules).detail, 2);
  EXPECT_EQ(parse("barrier flat\n" + header, &rules).detail, 2);
  EXPECT_FALSE(parse(header, &rules).ok());
}

TEST(Tuned, FitsItsOwnBuildMachineAndMpiAlone) {
  Rules rules;
  ASSERT_TRUE(parse(header + "barrier flat\n", &rules).ok());
  EXPECT_TRUE(fits(rules, {0xa1, 0xb2, 0xc3}).ok());
  EXPECT_NE(std::string(fits(rules, {0, 0xb2, 0xc3}).what).find("build"), std::string::npos);
  EXPECT_NE(std::string(fits(rules, {0xa1, 0, 0xc3}).what).find("machine"), std::string::npos);
  EXPECT_NE(std::string(fits(rules, {0xa1, 0xb2, 0}).what).find("MPI"), std::string::npos);
}

TEST(Tuned, FileLiesInTheConfigurationFolder) {
  char path[256];
  setenv("XDG_CONFIG_HOME", "/x/config", 1);
  ASSERT_TRUE(tuned_path({1, 0x2a, 0x3b}, path, sizeof path));
  EXPECT_STREQ(path, "/x/config/stretto/rules/000000000000002a-000000000000003b.rules");
  setenv("XDG_CONFIG_HOME", "not/absolute", 1);
  setenv("HOME", "/home/u", 1);
  ASSERT_TRUE(tuned_path({1, 0x2a, 0x3b}, path, sizeof path));
  EXPECT_STREQ(path, "/home/u/.config/stretto/rules/000000000000002a-000000000000003b.rules");
  EXPECT_FALSE(tuned_path({}, path, 20));
  unsetenv("XDG_CONFIG_HOME");
  unsetenv("HOME");
  EXPECT_FALSE(tuned_path({}, path, sizeof path));
}

// A library that is newer is another one; what it says after its version does not matter.
TEST(Tuned, SurroundingsTellLibrariesApart) {
  const Surroundings one = look_around("Open MPI v5.0.11, package: Open MPI root@a, 2026");
  EXPECT_EQ(one.key.mpi, look_around("Open MPI v5.0.11, package: Open MPI other@b, 2025").key.mpi);
  EXPECT_NE(one.key.mpi, look_around("Open MPI v5.0.12, package: Open MPI root@a, 2026").key.mpi);
  EXPECT_EQ(look_around("MPICH Version:      5.0.2\nMPICH Release date: 2026").key.mpi,
            look_around("MPICH Version: 5.0.2").key.mpi);
  EXPECT_EQ(one.key.machine, look_around(nullptr).key.machine);
  EXPECT_NE(std::string(one.about).find("; Open MPI v5.0.11"), std::string::npos);
  EXPECT_NE(std::string(look_around(nullptr).about).find("no MPI"), std::string::npos);
}

TEST(Tuned, SelectionNamesItsRule) {
  Rules rules;
  ASSERT_TRUE(parse("bcast bytes=..8 flat\nallreduce bytes=..8 flat\nallreduce bytes=1M.. mpi\n", &rules).ok());
  EXPECT_EQ(choose(rules, {collective::Kind::allreduce, 8, 2, false, Travel::by_rules}).rule, 1);
  EXPECT_EQ(choose(rules, {collective::Kind::allreduce, 1 << 20, 2, false, Travel::by_rules}).rule, 2);
  EXPECT_EQ(choose(rules, {collective::Kind::allreduce, 9, 2, false, Travel::by_rules}).rule, -1);
}

}  // namespace
}  // namespace stretto::select
