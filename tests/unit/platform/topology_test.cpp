#include "platform/topology.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "unit/platform/temporary_tree.hpp"

namespace stretto::platform {
namespace {

CpuSet set_of(std::initializer_list<int> cpus) {
  CpuSet set;
  for (int cpu : cpus) set.add(cpu);
  return set;
}

// 2 sockets of 2 NUMA nodes of 2 caches of 2 CPUs; the last level is shared by the first thread of each core and a second, 16
// later.
class MadeUpSysfs : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int cpu = 0; cpu < 16; ++cpu) write_cpu(cpu);
    for (int node = 0; node < 4; ++node)
      tree_.write("node/node" + std::to_string(node) + "/cpulist",
                  std::to_string(node * 4) + "-" + std::to_string(node * 4 + 3) + "\n");
  }
  void write_cpu(int cpu) {
    std::string folder = "cpu/cpu" + std::to_string(cpu) + "/";
    tree_.write(folder + "topology/physical_package_id", std::to_string(cpu / 8) + "\n");
    tree_.write(folder + "topology/core_siblings_list", cpu < 8 ? "0-7\n" : "8-15\n");
    tree_.write(folder + "node" + std::to_string(cpu / 4) + "/unused", "");
    tree_.write(folder + "cache/index0/level", "1\n");
    tree_.write(folder + "cache/index0/shared_cpu_list", std::to_string(cpu) + "\n");
    tree_.write(folder + "cache/index1/level", "3\n");
    tree_.write(folder + "cache/index1/shared_cpu_list",
                std::to_string(cpu / 2 * 2) + "," + std::to_string(cpu / 2 * 2 + 1) + "\n");
  }
  Location at(std::initializer_list<int> cpus) { return locate(tree_.path().c_str(), set_of(cpus)); }

  stretto::testing::TemporaryTree tree_;
};

TEST_F(MadeUpSysfs, OneCpuStandsSomewhere) {
  EXPECT_EQ(at({0}), (Location{0, 0, 0}));
  EXPECT_EQ(at({7}), (Location{0, 1, 6}));
  EXPECT_EQ(at({13}), (Location{1, 3, 12}));
}

TEST_F(MadeUpSysfs, SeveralHaveInCommonWhatTheyShare) {
  EXPECT_EQ(at({4, 5}), (Location{0, 1, 4}));
  EXPECT_EQ(at({4, 6}), (Location{0, 1, no_place}));
  EXPECT_EQ(at({3, 4}), (Location{0, no_place, no_place}));
  EXPECT_EQ(at({7, 8}), (Location{no_place, no_place, no_place}));
}

TEST_F(MadeUpSysfs, WhatIsNotThereIsUnknown) {
  EXPECT_EQ(at({}), Location{});
  EXPECT_EQ(at({20}), (Location{no_place, 0, no_place})) << "without NUMA, all memory is one node's";
  EXPECT_EQ(locate("/no/such/folder", set_of({0})), (Location{no_place, 0, no_place}));
}

TEST(Topology, ThisMachineHasOne) {
  Location here = locate("/sys/devices/system", allowed_cpus());
  EXPECT_GE(here.numa, no_place);
}

class MadeUpFile : public ::testing::Test {
 protected:
  Location of(int rank, const CpuSet& cpus) {
    Location found;
    Status status = locate_made_up(text_, cpus, rank, &found);
    EXPECT_TRUE(status.ok()) << status.detail;
    return found;
  }
  const char* text_ =
      "# two sockets\n"
      "cpu 0..3  socket=0 numa=0 cache=0\r\n"
      "\n"
      "cpu 4..7  socket=0 numa=1 cache=1  # the other half\n"
      "cpu 6     socket=0 numa=1 cache=2\n"
      "rank 2..3 socket=1 numa=5\n"
      "rank 3    socket=1 numa=6\n";
};

TEST_F(MadeUpFile, PlacesRanksAndElseCpus) {
  EXPECT_EQ(of(2, set_of({0})), (Location{1, 5, no_place}));
  EXPECT_EQ(of(3, set_of({0})), (Location{1, 6, no_place})) << "the later line wins";
  EXPECT_EQ(of(0, set_of({1, 2})), (Location{0, 0, 0}));
  EXPECT_EQ(of(0, set_of({5, 6})), (Location{0, 1, no_place}));
  EXPECT_EQ(of(0, set_of({0, 5})), (Location{0, no_place, no_place}));
  EXPECT_EQ(of(0, set_of({0, 9})), Location{}) << "a CPU that is not in it";
  EXPECT_EQ(of(0, set_of({})), Location{});
}

TEST(MadeUpTopology, SaysWhichLineDoesNotRead) {
  for (const char* wrong : {"socket 1", "cpu", "cpu 1", "cpu x numa=1", "cpu 1..0 numa=1", "cpu 1 numa", "cpu 1 numa=-1",
                            "cpu 1 node=1", "cpu 1 numa=99999999999", "rank 1.. numa=0", "rank 1 numa=0 1"}) {
    std::string text = std::string("cpu 0 numa=0\n") + wrong + "\n";
    Location unused;
    Status status = locate_made_up(text, set_of({0}), 0, &unused);
    EXPECT_EQ(status.code, Code::invalid) << wrong;
    EXPECT_EQ(status.detail, 2) << wrong;
  }
}

TEST(MadeUpTopology, RandomTextNeverDoesWorseThanRefuse) {
  std::mt19937 random(11);
  const std::string alphabet = "rankcpu socketmah=.0129#\n\t\xff";
  for (int i = 0; i < 3000; ++i) {
    std::string text(random() % 100, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    Location found;
    Status status = locate_made_up(text, set_of({0, 1}), 0, &found);
    EXPECT_TRUE(status.ok() || status.code == Code::invalid);
  }
}

TEST(MadeUpTopology, IsReadFromAFile) {
  stretto::testing::TemporaryTree tree;
  tree.write("machine", "rank 0..1 numa=3\n");
  Location found;
  ASSERT_TRUE(load_location(tree.path("machine").c_str(), set_of({0}), 1, &found).ok());
  EXPECT_EQ(found.numa, 3);
  EXPECT_EQ(load_location(tree.path("nothing").c_str(), set_of({0}), 1, &found).code, Code::refused);
  ASSERT_EQ(mkfifo(tree.path("pipe").c_str(), 0600), 0);
  EXPECT_STREQ(load_location(tree.path("pipe").c_str(), set_of({0}), 1, &found).what, "not a regular file");
}

}  // namespace
}  // namespace stretto::platform
