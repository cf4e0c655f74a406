#include "platform/machine.hpp"

#include <gtest/gtest.h>

#include <string>

#include "unit/platform/temporary_tree.hpp"

namespace stretto::platform {
namespace {

TEST(Machine, ListsAreCounted) {
  int last;
  EXPECT_EQ(count_listed("0-3,8\n", &last), 5);
  EXPECT_EQ(last, 8);
  EXPECT_EQ(count_listed("0", &last), 1);
  EXPECT_EQ(last, 0);
  for (const char* wrong : {"", "x", "3-1", "0-", "1,,2", "-1"}) EXPECT_EQ(count_listed(wrong, &last), 0) << wrong;
}

MachineFacts two_sockets(std::string_view cpuset) {
  stretto::testing::TemporaryTree tree;
  tree.write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2.0GHz \n\nprocessor\t: 1\n");
  tree.write("sys/devices/system/cpu/online", "0-3\n");
  tree.write("sys/devices/system/node/online", "0-1\n");
  for (int cpu = 0; cpu < 4; ++cpu)
    tree.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/physical_package_id", cpu < 2 ? "0\n" : "1\n");
  return read_machine(tree.path().c_str(), cpuset);
}

TEST(Machine, FactsComeFromTheKernelsFiles) {
  const MachineFacts facts = two_sockets("");
  EXPECT_STREQ(facts.cpu, "Some CPU @ 2.0GHz");
  EXPECT_EQ(facts.cpus, 4);
  EXPECT_EQ(facts.sockets, 2);
  EXPECT_EQ(facts.numa_nodes, 2);
}

TEST(Machine, AControlGroupLimitsTheCpus) {
  EXPECT_EQ(two_sockets("0-1\n").cpus, 2);
  EXPECT_EQ(two_sockets("\n").cpus, 4);
}

TEST(Machine, MissingFilesAreNoDefect) {
  const MachineFacts facts = read_machine("/nonexistent", "");
  EXPECT_STREQ(facts.cpu, "unknown CPU");
  EXPECT_EQ(facts.cpus, 0);
}

TEST(Machine, ThisOneIsKnown) {
  EXPECT_GT(machine_facts().cpus, 0);
}

}  // namespace
}  // namespace stretto::platform
