#include "platform/cgroup.hpp"

#include <gtest/gtest.h>

#include "unit/platform/temporary_tree.hpp"

namespace stretto::platform {
namespace {

using stretto::testing::TemporaryTree;

std::string v2_mount(const std::string& root, const std::string& at) {
  return "31 23 0:28 " + root + " " + at + " rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
}
std::string v1_mount(const std::string& controllers, const std::string& root, const std::string& at) {
  return "32 31 0:29 " + root + " " + at + " rw,relatime - cgroup cgroup rw," + controllers + "\n";
}
const std::string other_mounts = "23 1 8:1 / / rw - ext4 /dev/root rw\n24 23 0:5 / /dev/shm rw - tmpfs cgroup2 rw\nnonsense\n";

TEST(FindCgroup, VersionTwo) {
  Cgroup group = find_cgroup("0::/user.slice/job\n", other_mounts + v2_mount("/", "/sys/fs/cgroup"), "cpu");
  EXPECT_EQ(group.version, 2);
  EXPECT_STREQ(group.mount, "/sys/fs/cgroup");
  EXPECT_STREQ(group.path, "/user.slice/job");
}

TEST(FindCgroup, ControllersOfVersionOneComeFirst) {
  std::string groups = "5:cpuset:/x\n4:cpu,cpuacct:/slurm/job_7\n0::/elsewhere\n";
  std::string mounts = v2_mount("/", "/sys/fs/cgroup/unified") + v1_mount("cpuset", "/", "/sys/fs/cgroup/cpuset") +
                       v1_mount("cpu,cpuacct", "/", "/sys/fs/cgroup/cpu");
  Cgroup cpu = find_cgroup(groups, mounts, "cpu");
  EXPECT_EQ(cpu.version, 1);
  EXPECT_STREQ(cpu.mount, "/sys/fs/cgroup/cpu");
  EXPECT_STREQ(cpu.path, "/slurm/job_7");
  Cgroup memory = find_cgroup(groups, mounts, "memory");
  EXPECT_EQ(memory.version, 2);
  EXPECT_STREQ(memory.path, "/elsewhere");
}

TEST(FindCgroup, ContainersSeePartOfThePath) {
  auto path = [](const char* group, const char* root) {
    Cgroup found = find_cgroup(std::string("0::") + group + "\n", v2_mount(root, "/sys/fs/cgroup"), "cpu");
    EXPECT_EQ(found.version, 2);
    return std::string(found.path);
  };
  EXPECT_EQ(path("/", "/"), "");
  EXPECT_EQ(path("/docker/abc", "/docker/abc"), "");
  EXPECT_EQ(path("/docker/abc/job", "/docker/abc"), "/job");
  EXPECT_EQ(path("/docker/abcdef", "/docker/abc"), "");
  EXPECT_EQ(path("/../outside", "/"), "");
}

TEST(FindCgroup, NothingThere) {
  EXPECT_EQ(find_cgroup("", "", "cpu").version, 0);
  EXPECT_EQ(find_cgroup("0::/x\n", other_mounts, "cpu").version, 0);
  EXPECT_EQ(cgroup_cpu_quota(Cgroup{}).cpus, 0);
  EXPECT_EQ(cgroup_memory_limit(Cgroup{}), SIZE_MAX);
}

TEST(CgroupLimits, TightestOfAllLevels) {
  TemporaryTree tree;
  tree.write("cpu.max", "800000 100000\n");
  tree.write("outer/cpu.max", "150000 100000\n");
  tree.write("outer/inner/cpu.max", "max 100000\n");
  tree.write("outer/memory.max", "max\n");
  tree.write("outer/inner/memory.max", "4096\n");
  Cgroup group = find_cgroup("0::/outer/inner\n", v2_mount("/", tree.path()), "cpu");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(group).cpus, 1.5);
  EXPECT_EQ(cgroup_memory_limit(group), 4096u);
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(find_cgroup("0::/\n", v2_mount("/", tree.path()), "cpu")).cpus, 8);
}

// A container sees its own group as the root.
TEST(CgroupLimits, QuotasAreToldApartByTheirGroup) {
  TemporaryTree tree;
  for (const char* file : {"a/cpu.max", "a/step/cpu.max", "b/cpu.max"}) tree.write(file, "200000 100000\n");
  const auto number = [&](const char* path, const std::string& mount) {
    return cgroup_cpu_quota(find_cgroup(std::string("0::") + path + "\n", v2_mount("/", mount), "cpu")).group;
  };
  EXPECT_EQ(number("/a", tree.path()), number("/", tree.path("a")));
  EXPECT_EQ(number("/a", tree.path()), number("/a/step", tree.path())) << "of equal ones the outermost";
  EXPECT_NE(number("/", tree.path("a")), number("/", tree.path("b")));
}

TEST(CgroupLimits, VersionOne) {
  TemporaryTree tree;
  tree.write("job/cpu.cfs_quota_us", "300000\n");
  tree.write("job/cpu.cfs_period_us", "100000\n");
  tree.write("job/step/cpu.cfs_quota_us", "-1\n");
  tree.write("job/step/cpu.cfs_period_us", "100000\n");
  tree.write("job/memory.limit_in_bytes", "1048576\n");
  tree.write("job/step/memory.limit_in_bytes", "9223372036854771712\n");
  Cgroup group = find_cgroup("1:cpu,memory:/job/step\n", v1_mount("cpu,memory", "/", tree.path()), "cpu");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(group).cpus, 3);
  EXPECT_EQ(cgroup_memory_limit(group), 1048576u);
}

// The nearest group to which the controller extends; the root is everybody's.
TEST(CgroupScheduling, VersionTwo) {
  TemporaryTree tree;
  tree.write("cgroup.procs", "");
  tree.write("a/cpu.weight", "100\n");
  tree.write("a/b/cgroup.procs", "");
  tree.write("c/cgroup.procs", "");
  const auto number = [&](const std::string& path) {
    return cgroup_scheduled_as(find_cgroup("0::" + path + "\n", v2_mount("/", tree.path()), "cpu"));
  };
  EXPECT_NE(number("/a"), 0u);
  EXPECT_EQ(number("/a/b"), number("/a"));
  EXPECT_EQ(number("/c"), 0u);
  EXPECT_EQ(number("/"), 0u);
  tree.write("a/b/cpu.weight", "100\n");
  EXPECT_NE(number("/a/b"), number("/a"));
  EXPECT_EQ(cgroup_scheduled_as(Cgroup{}), 0u);
}

TEST(CgroupScheduling, VersionOne) {
  TemporaryTree tree;
  tree.write("a/tasks", "");
  const auto number = [&](const std::string& path) {
    return cgroup_scheduled_as(find_cgroup("1:cpu:" + path + "\n", v1_mount("cpu", "/", tree.path()), "cpu"));
  };
  EXPECT_NE(number("/"), 0u);  // in a container: what it sees as the root is not
  tree.write("release_agent", "");
  EXPECT_EQ(number("/"), 0u);
  EXPECT_NE(number("/a"), 0u);
}

TEST(CgroupLimits, EscapedPaths) {
  TemporaryTree tree;
  tree.write("with blank/cpu.max", "200000 100000\n");
  Cgroup group = find_cgroup("0::/\n", v2_mount("/", tree.path("with\\040blank")), "cpu");
  EXPECT_DOUBLE_EQ(cgroup_cpu_quota(group).cpus, 2);
}

}  // namespace
}  // namespace stretto::platform
