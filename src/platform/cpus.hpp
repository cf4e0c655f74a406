// Which CPUs this process may use.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::platform {

inline constexpr int max_cpus = 1024;

struct CpuSet {
  uint64_t word[max_cpus / 64] = {};
  void add(int cpu);
  bool has(int cpu) const;
  int count() const;
  void merge(const CpuSet& other);
  bool meets(const CpuSet& other) const;  // some CPU is in both
  bool operator==(const CpuSet& other) const;
};

CpuSet allowed_cpus();  // sched_getaffinity of the calling thread; CPUs beyond max_cpus are left out
int current_cpu();      // on which the calling thread runs; -1 where the system does not tell
bool move_to(int cpu);  // the calling thread, which stays allowed what it was; false: refused, or not allowed

// The CPUs' worth of time that a control group (v1 or v2) grants its processes together; 0 where unlimited or unknown.
struct CpuQuota {
  double cpus = 0;
  uint64_t group = 0;  // equal on its processes, also seen from other containers, and different on others
};
CpuQuota cpu_quota();

// Bytes of the largest and of the level-2 cache of the CPU that is the first allowed one when they are first asked for (sysfs, a
// dozen files; then sysconf); 32 MiB and 1 MiB when unknown.
size_t last_level_cache();
size_t private_cache();

}  // namespace stretto::platform
