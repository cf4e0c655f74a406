#include "platform/cpus.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "platform/caches.hpp"
#include "unit/platform/temporary_tree.hpp"

namespace stretto::platform {
namespace {

TEST(CpuSet, AddsMergesCounts) {
  CpuSet a, b;
  for (int cpu : {0, 63, 64, max_cpus - 1}) a.add(cpu);
  for (int outside : {-1, max_cpus, max_cpus + 64}) {
    a.add(outside);
    EXPECT_FALSE(a.has(outside));
  }
  EXPECT_EQ(a.count(), 4);
  EXPECT_TRUE(a.has(64));
  EXPECT_FALSE(a.has(65));
  b.add(65);
  EXPECT_FALSE(a == b);
  b.merge(a);
  EXPECT_EQ(b.count(), 5);
  EXPECT_TRUE(b.has(65) && b.has(max_cpus - 1));
}

TEST(AllowedCpus, AreThoseOfTheCallingThread) {
  cpu_set_t kernel;
  ASSERT_EQ(sched_getaffinity(0, sizeof kernel, &kernel), 0);
  CpuSet all = allowed_cpus();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) EXPECT_EQ(all.has(cpu), CPU_ISSET(cpu, &kernel)) << cpu;
  int last = 0;
  for (int cpu = 0; cpu < max_cpus; ++cpu)
    if (all.has(cpu)) last = cpu;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_cpus().count(), 1);
    EXPECT_TRUE(allowed_cpus().has(last));
  }).join();
  EXPECT_TRUE(allowed_cpus() == all);
}

TEST(MoveTo, LeavesAThreadAllowedWhatItWas) {
  const CpuSet all = allowed_cpus();
  int refused = 0;
  for (int cpu = 0; cpu < max_cpus; ++cpu) {
    const bool moved = move_to(cpu);
    EXPECT_EQ(moved, all.has(cpu)) << cpu;
    EXPECT_TRUE(all.has(current_cpu()));
    refused += !moved;
  }
  EXPECT_EQ(refused, max_cpus - all.count());
  EXPECT_FALSE(move_to(-1));
  EXPECT_FALSE(move_to(max_cpus));
  EXPECT_TRUE(allowed_cpus() == all);
}

TEST(Caches, AsSysfsListsThem) {
  stretto::testing::TemporaryTree tree;
  auto cache = [&](int index, const char* level, const char* type, const char* size) {
    std::string directory = "index" + std::to_string(index) + "/";
    tree.write(directory + "level", level);
    tree.write(directory + "type", type);
    tree.write(directory + "size", size);
  };
  cache(0, "1\n", "Data\n", "48K\n");
  cache(1, "1\n", "Instruction\n", "64K\n");
  cache(2, "2\n", "Unified\n", "2048K\n");
  cache(3, "3\n", "Unified\n", "106496K\n");
  std::string path = tree.path();
  EXPECT_EQ(cache_bytes(path.c_str(), 1), 48u << 10);
  EXPECT_EQ(cache_bytes(path.c_str(), 2), 2048u << 10);
  EXPECT_EQ(cache_bytes(path.c_str(), 0), 106496u << 10);
  EXPECT_EQ(cache_bytes(path.c_str(), 4), 0u);
  EXPECT_EQ(cache_bytes("/nowhere", 0), 0u);
}

TEST(Caches, OfThisMachineMakeSense) {
  EXPECT_GE(private_cache(), size_t(64) << 10);
  EXPECT_GE(last_level_cache(), private_cache());
  EXPECT_GE(cpu_quota().cpus, 0);
}

}  // namespace
}  // namespace stretto::platform
