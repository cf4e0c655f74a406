#include "platform/cgroup.hpp"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "platform/parse.hpp"

namespace stretto::platform {
namespace {

bool list_has(std::string_view list, std::string_view item) {
  while (!list.empty())
    if (next_token(&list, ',') == item) return true;
  return false;
}

// /proc/self/cgroup: "HIERARCHY:CONTROLLERS:PATH". v1 names its controllers; v2 is hierarchy 0 and names none.
bool find_path(std::string_view groups, std::string_view controller, int version, std::string_view* path) {
  while (!groups.empty()) {
    std::string_view line = next_token(&groups, '\n');
    std::string_view hierarchy = next_token(&line, ':');
    std::string_view controllers = next_token(&line, ':');
    *path = line;
    if (version == 1 && list_has(controllers, controller)) return true;
    if (version == 2 && hierarchy == "0" && controllers.empty()) return true;
  }
  return false;
}

// mountinfo: "ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS [FIELDS...] - TYPE SOURCE SUPEROPTIONS".
bool find_mount(std::string_view mounts, std::string_view controller, int version, std::string_view* root,
                std::string_view* mount) {
  while (!mounts.empty()) {
    std::string_view line = next_token(&mounts, '\n');
    size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::string_view tail = line.substr(dash + 3);
    std::string_view type = next_token(&tail, ' ');
    next_token(&tail, ' ');
    for (int skipped = 0; skipped < 3; ++skipped) next_token(&line, ' ');
    *root = next_token(&line, ' ');
    *mount = next_token(&line, ' ');
    if (version == 1 && type == "cgroup" && list_has(tail, controller)) return true;
    if (version == 2 && type == "cgroup2") return true;
  }
  return false;
}

// The kernel writes blanks, tabs, newlines and backslashes in paths as \ooo.
void unescape(std::string_view text, char* out, size_t capacity) {
  size_t used = 0;
  auto octal = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '7'; };
  for (size_t i = 0; i < text.size() && used + 1 < capacity; ++i) {
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out[used++] = char((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out[used++] = text[i];
    }
  }
  out[used] = 0;
}

// The group's path as seen below a mount that shows the hierarchy from `root` on.
std::string_view below_mount(std::string_view path, std::string_view root) {
  if (path.starts_with("/..")) return {};  // the process stands outside what this namespace shows: only the mount is known
  if (root == "/") return path == "/" ? std::string_view{} : path;
  if (!path.starts_with(root)) return {};
  path.remove_prefix(root.size());
  return path.starts_with('/') ? path : std::string_view{};
}

// The path of a file of the group, or of the group itself.
struct InGroup {
  char path[sizeof Cgroup::mount + sizeof Cgroup::path + 64];
  explicit InGroup(const Cgroup& group, const char* file = "") {
    snprintf(path, sizeof path, "%s%s/%s", group.mount, group.path, file);
  }
  bool exists() const { return access(path, F_OK) == 0; }
};

// The kernel numbers the folders of groups, wherever they are seen. 0: it is not there.
uint64_t number_of(const Cgroup& group) {
  struct stat found;
  return stat(InGroup(group).path, &found) == 0 ? found.st_ino : 0;
}

std::string_view read_limit(const Cgroup& group, const char* file, char* buffer, size_t capacity) {
  return read_text(InGroup(group, file).path, buffer, capacity);
}

// Only v1's group of all has an agent; in v2 it alone has no weight, as has a group to which the controller does not extend.
bool is_scheduled_as_one(const Cgroup& group) {
  if (group.version == 2) return InGroup(group, "cpu.weight").exists();
  return group.path[0] != '\0' || !InGroup(group, "release_agent").exists();
}

// Calls `visit` for the group and each group above it, up to the mount itself.
template <class Visit>
void for_each_level(Cgroup group, Visit visit) {
  for (;;) {
    visit(group);
    char* last = strrchr(group.path, '/');
    if (last == nullptr) return;
    *last = 0;
  }
}

}  // namespace

Cgroup find_cgroup(std::string_view groups, std::string_view mounts, std::string_view controller) {
  Cgroup group;
  for (int version : {1, 2}) {
    std::string_view path, root, mount;
    if (!find_path(groups, controller, version, &path) || !find_mount(mounts, controller, version, &root, &mount)) continue;
    std::string_view below = below_mount(path, root);
    if (mount.size() >= sizeof group.mount || below.size() >= sizeof group.path) continue;
    group.version = version;
    unescape(mount, group.mount, sizeof group.mount);
    unescape(below, group.path, sizeof group.path);
    return group;
  }
  return group;
}

Cgroup find_own_cgroup(std::string_view controller) {
  constexpr size_t groups_bytes = 16 << 10, mounts_bytes = 256 << 10;
  std::unique_ptr<char[]> text(new (std::nothrow) char[groups_bytes + mounts_bytes]);
  if (text == nullptr) return {};
  std::string_view groups = read_text("/proc/self/cgroup", text.get(), groups_bytes);
  std::string_view mounts = read_text("/proc/self/mountinfo", text.get() + groups_bytes, mounts_bytes);
  return find_cgroup(groups, mounts, controller);
}

// Of equal ones that of the outermost group, which has most processes.
CpuQuota cgroup_cpu_quota(const Cgroup& group) {
  CpuQuota least;
  if (group.version == 0) return least;
  for_each_level(group, [&](const Cgroup& level) {
    char quota[64], period[64];
    double cpus = level.version == 2 ? parse_cpu_max(read_limit(level, "cpu.max", quota, sizeof quota))
                                     : parse_cfs_quota(read_limit(level, "cpu.cfs_quota_us", quota, sizeof quota),
                                                       read_limit(level, "cpu.cfs_period_us", period, sizeof period));
    if (cpus > 0 && (least.cpus == 0 || cpus <= least.cpus)) least = {cpus, number_of(level)};
  });
  return least;
}

uint64_t cgroup_scheduled_as(const Cgroup& group) {
  uint64_t number = 0;
  if (group.version == 0) return number;
  for_each_level(group, [&](const Cgroup& level) {
    if (number == 0 && is_scheduled_as_one(level)) number = number_of(level);
  });
  return number;
}

size_t cgroup_memory_limit(const Cgroup& group) {
  if (group.version == 0) return SIZE_MAX;
  size_t least = SIZE_MAX;
  for_each_level(group, [&](const Cgroup& level) {
    char limit[64];
    const char* file = level.version == 2 ? "memory.max" : "memory.limit_in_bytes";
    least = std::min(least, parse_memory_limit(read_limit(level, file, limit, sizeof limit)));
  });
  return least;
}

}  // namespace stretto::platform
