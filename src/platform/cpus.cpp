#include "platform/cpus.hpp"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>

#include "platform/caches.hpp"
#include "platform/cgroup.hpp"
#include "platform/parse.hpp"

namespace stretto::platform {

void CpuSet::add(int cpu) {
  if (cpu >= 0 && cpu < max_cpus) word[cpu / 64] |= uint64_t(1) << (cpu % 64);
}

bool CpuSet::has(int cpu) const {
  return cpu >= 0 && cpu < max_cpus && (word[cpu / 64] >> (cpu % 64) & 1) != 0;
}

int CpuSet::count() const {
  int total = 0;
  for (uint64_t bits : word) total += __builtin_popcountll(bits);
  return total;
}

void CpuSet::merge(const CpuSet& other) {
  for (int i = 0; i < max_cpus / 64; ++i) word[i] |= other.word[i];
}

bool CpuSet::meets(const CpuSet& other) const {
  uint64_t both = 0;
  for (int i = 0; i < max_cpus / 64; ++i) both |= word[i] & other.word[i];
  return both != 0;
}

bool CpuSet::operator==(const CpuSet& other) const {
  return std::equal(std::begin(word), std::end(word), std::begin(other.word));
}

namespace {

// The kernel refuses a mask shorter than its own, whatever the CPUs in it: ask with room for the largest it can be built for.
constexpr int kernel_cpus = 65536;
union KernelMask {
  char room[kernel_cpus / 8];
  cpu_set_t mask;
};

// Not on the stack, of which a thread may have no more. Null: no memory.
std::unique_ptr<KernelMask[]> new_masks(size_t count) {
  return std::unique_ptr<KernelMask[]>(new (std::nothrow) KernelMask[count]());
}
bool get_affinity(KernelMask& mask) {
  return sched_getaffinity(0, sizeof mask.room, &mask.mask) == 0;
}
bool set_affinity(const KernelMask& mask) {
  return sched_setaffinity(0, sizeof mask.room, &mask.mask) == 0;
}

int first_allowed_cpu() {
  CpuSet allowed = allowed_cpus();
  for (int cpu = 0; cpu < max_cpus; ++cpu)
    if (allowed.has(cpu)) return cpu;
  return 0;
}

size_t own_cache(int level) {
  char directory[80];
  snprintf(directory, sizeof directory, "/sys/devices/system/cpu/cpu%d/cache", first_allowed_cpu());
  return cache_bytes(directory, level);
}

size_t from_sysconf(int name) {
  long bytes = sysconf(name);
  return bytes > 0 ? size_t(bytes) : 0;
}

size_t first_known(std::initializer_list<size_t> candidates) {
  for (size_t bytes : candidates)
    if (bytes != 0) return bytes;
  return 0;
}

}  // namespace

int current_cpu() {
  return sched_getcpu();
}

bool move_to(int cpu) {
  const auto masks = new_masks(2);
  if (cpu < 0 || cpu >= max_cpus || !masks) return false;
  KernelMask &before = masks[0], &only = masks[1];
  if (!get_affinity(before) || !CPU_ISSET_S(size_t(cpu), sizeof before.room, &before.mask)) return false;
  CPU_SET_S(size_t(cpu), sizeof only.room, &only.mask);
  const bool moved = set_affinity(only);
  return set_affinity(before) && moved;
}

CpuSet allowed_cpus() {
  CpuSet set;
  const auto kernel = new_masks(1);
  const bool known = kernel && get_affinity(kernel[0]);
  long online = known ? 0 : std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
  for (int cpu = 0; cpu < max_cpus; ++cpu)
    if (known ? CPU_ISSET_S(size_t(cpu), sizeof kernel[0].room, &kernel[0].mask) : cpu < online) set.add(cpu);
  return set;
}

CpuQuota cpu_quota() {
  return cgroup_cpu_quota(find_own_cgroup("cpu"));
}

size_t cache_bytes(const char* directory, int level) {
  constexpr int most_caches = 16;
  size_t largest = 0;
  char path[512], text[64];
  for (int index = 0; index < most_caches; ++index) {
    auto read = [&](const char* file) {
      snprintf(path, sizeof path, "%s/index%d/%s", directory, index, file);
      return read_text(path, text, sizeof text);
    };
    uint64_t at_level = 0;
    if (!parse_number(read("level"), &at_level)) break;
    if ((level != 0 && at_level != uint64_t(level)) || read("type").starts_with("Instruction")) continue;
    largest = std::max(largest, parse_size(read("size")));
  }
  return largest;
}

size_t last_level_cache() {
  static const size_t bytes = first_known({own_cache(0), from_sysconf(_SC_LEVEL4_CACHE_SIZE), from_sysconf(_SC_LEVEL3_CACHE_SIZE),
                                           from_sysconf(_SC_LEVEL2_CACHE_SIZE), size_t(32) << 20});
  return bytes;
}

size_t private_cache() {
  static const size_t bytes = first_known({own_cache(2), from_sysconf(_SC_LEVEL2_CACHE_SIZE), size_t(1) << 20});
  return bytes;
}

}  // namespace stretto::platform
