// The control group this process runs in, and the limits it inherits. Both hierarchies, v1 and v2, and mixtures of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platform/cpus.hpp"

namespace stretto::platform {

// Where the group of one controller stands: `path` ("" or "/a/b") below `mount`. version 0: not found.
struct Cgroup {
  int version = 0;
  char mount[512] = {};
  char path[1024] = {};
};

// Finds the group of `controller` ("cpu", "memory") from the texts of /proc/self/cgroup and /proc/self/mountinfo. A v1
// hierarchy that has the controller wins over v2, as in the kernel. In a container that sees only a part of the
// hierarchy, the part of the path above the mount is left out.
Cgroup find_cgroup(std::string_view groups, std::string_view mounts, std::string_view controller);

// The same from this process's own files.
Cgroup find_own_cgroup(std::string_view controller);

// The tightest limit of the group and all groups above it: CPUs' worth of time, bytes (SIZE_MAX: unlimited).
CpuQuota cgroup_cpu_quota(const Cgroup& group);
size_t cgroup_memory_limit(const Cgroup& group);

// A number for the group of the cpu controller whose members the scheduler weighs against each other: that group, or the nearest
// above it to which the controller extends. 0: the group of all, or unknown.
uint64_t cgroup_scheduled_as(const Cgroup& group);

}  // namespace stretto::platform
