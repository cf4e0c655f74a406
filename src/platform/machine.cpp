#include "platform/machine.hpp"

#include <stdio.h>

#include "platform/cgroup.hpp"
#include "platform/cpus.hpp"
#include "platform/parse.hpp"

namespace stretto::platform {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// The value of the first line of /proc/cpuinfo that names the model: x86's, or else what ARM and others write.
std::string_view model_in(std::string_view cpuinfo) {
  for (const std::string_view key : {"model name", "Model", "CPU part", "cpu"}) {
    for (std::string_view rest = cpuinfo; !rest.empty();) {
      std::string_view line = next_token(&rest, '\n');
      const std::string_view name = trimmed(next_token(&line, ':'));
      if (name == key) return trimmed(line);
    }
  }
  return {};
}

std::string_view read_below(const char* root, const char* path, char* buffer, size_t capacity) {
  char name[512];
  snprintf(name, sizeof name, "%s%s", root, path);
  return read_text(name, buffer, capacity);
}

// Distinct packages of the CPUs up to `last`.
int count_packages(const char* root, int last) {
  CpuSet packages;
  char text[64], path[96];
  for (int cpu = 0; cpu <= last && cpu < max_cpus; ++cpu) {
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    uint64_t package;
    if (parse_number(read_below(root, path, text, sizeof text), &package) && package < max_cpus) packages.add(int(package));
  }
  return packages.count();
}

}  // namespace

int count_listed(std::string_view list, int* last) {
  int count = 0;
  *last = -1;
  for (list = trimmed(list); !list.empty();) {
    const std::string_view range = next_token(&list, ',');
    const size_t dash = range.find('-');
    uint64_t from, to;
    if (!parse_number(range.substr(0, dash), &from)) return 0;
    if (!parse_number(dash == std::string_view::npos ? range : range.substr(dash + 1), &to) || to < from || to > 1 << 20)
      return 0;
    count += int(to - from) + 1;
    *last = int(to) > *last ? int(to) : *last;
  }
  return count;
}

MachineFacts read_machine(const char* root, std::string_view cpuset) {
  MachineFacts facts;
  char text[4096];
  const std::string_view model = model_in(read_below(root, "/proc/cpuinfo", text, sizeof text));
  if (!model.empty()) snprintf(facts.cpu, sizeof facts.cpu, "%.*s", int(model.size()), model.data());
  int last = -1, unused;
  facts.cpus = count_listed(read_below(root, "/sys/devices/system/cpu/online", text, sizeof text), &last);
  facts.sockets = count_packages(root, last);
  facts.numa_nodes = count_listed(read_below(root, "/sys/devices/system/node/online", text, sizeof text), &unused);
  if (const int allowed = count_listed(cpuset, &unused)) facts.cpus = allowed;
  return facts;
}

MachineFacts machine_facts() {
  const Cgroup group = find_own_cgroup("cpuset");
  char path[sizeof group.mount + sizeof group.path + 64], text[4096];
  const char* file = group.version == 1 ? "cpuset.effective_cpus" : "cpuset.cpus.effective";
  snprintf(path, sizeof path, "%s%s/%s", group.mount, group.path, file);
  return read_machine("", group.version != 0 ? read_text(path, text, sizeof text) : std::string_view{});
}

}  // namespace stretto::platform
