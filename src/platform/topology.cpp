#include "platform/topology.hpp"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <new>

#include "platform/parse.hpp"

namespace stretto::platform {
namespace {

CpuSet parse_cpu_list(std::string_view list) {
  CpuSet set;
  while (!list.empty()) {
    std::string_view range = next_token(&list, ',');
    size_t dash = range.find('-');
    uint64_t from, to;
    if (!parse_number(range.substr(0, dash), &from)) break;
    if (dash == range.npos || !parse_number(range.substr(dash + 1), &to)) to = from;
    for (uint64_t cpu = from; cpu <= to && cpu < uint64_t(max_cpus); ++cpu) set.add(int(cpu));
  }
  return set;
}

// A CPU's folder in sysfs, or another.
struct Folder {
  const char* path;

  int32_t number(const char* file) const {
    char text[32];
    uint64_t value;
    return parse_number(read(file, text, sizeof text), &value) && value <= INT32_MAX ? int32_t(value) : no_place;
  }
  // A list of CPUs such as "8-15,72-79".
  CpuSet list(const char* file) const {
    char text[4096];
    return parse_cpu_list(read(file, text, sizeof text));
  }
  bool lists(const char* file, const CpuSet& cpus) const {  // all of `cpus`
    CpuSet listed = list(file);
    for (int i = 0; i < max_cpus / 64; ++i)
      if ((cpus.word[i] & ~listed.word[i]) != 0) return false;
    return true;
  }

 private:
  std::string_view read(const char* file, char* text, size_t bytes) const {
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", path, file);
    return read_text(whole, text, bytes);
  }
};

int first_cpu(const CpuSet& cpus) {
  for (int cpu = 0; cpu < max_cpus; ++cpu)
    if (cpus.has(cpu)) return cpu;
  return no_place;
}

// The node is the link nodeN in the CPU's folder. Kernels without NUMA have none: then all memory is one node's.
int32_t node_of(const char* cpu_folder) {
  DIR* folder = opendir(cpu_folder);
  if (folder == nullptr) return no_place;
  int32_t node = no_place;
  while (const dirent* entry = readdir(folder)) {
    uint64_t value;
    if (strncmp(entry->d_name, "node", 4) == 0 && parse_number(entry->d_name + 4, &value)) node = int32_t(value);
  }
  closedir(folder);
  return node;
}

int32_t numa_of(const char* root, const char* cpu_folder, const CpuSet& cpus) {
  char path[256];
  int32_t node = node_of(cpu_folder);
  if (node == no_place) return 0;
  snprintf(path, sizeof path, "%s/node/node%d", root, node);
  return Folder{path}.lists("cpulist", cpus) ? node : no_place;
}

// The last-level cache is known by the first CPU that shares it.
int32_t cache_of(const Folder& cpu_folder, const CpuSet& cpus) {
  constexpr int most_caches = 16;
  int32_t highest = 0, id = no_place;
  char file[64];
  for (int index = 0; index < most_caches; ++index) {
    snprintf(file, sizeof file, "cache/index%d/level", index);
    int32_t level = cpu_folder.number(file);
    if (level == no_place) break;
    if (level <= highest) continue;
    snprintf(file, sizeof file, "cache/index%d/shared_cpu_list", index);
    highest = level;
    id = cpu_folder.lists(file, cpus) ? first_cpu(cpu_folder.list(file)) : no_place;
  }
  return id;
}

// One statement of a made-up topology.
struct Statement {
  bool of_rank = false;
  uint64_t from = 0, to = 0;
  Location location;
  bool covers(int number) const { return number >= 0 && from <= uint64_t(number) && uint64_t(number) <= to; }
};

bool parse_range(std::string_view word, Statement* statement) {
  size_t dots = word.find("..");
  bool one = dots == word.npos;
  return parse_number(word.substr(0, dots), &statement->from) &&
         parse_number(one ? word : word.substr(dots + 2), &statement->to) && statement->from <= statement->to;
}

bool parse_place(std::string_view word, Location* location) {
  size_t equals = word.find('=');
  uint64_t value;
  if (equals == word.npos || !parse_number(word.substr(equals + 1), &value) || value > INT32_MAX) return false;
  std::string_view key = word.substr(0, equals);
  int32_t* part = key == "socket" ? &location->socket : key == "numa" ? &location->numa : &location->cache;
  *part = int32_t(value);
  return key == "socket" || key == "numa" || key == "cache";
}

std::string_view next_word(std::string_view* line) {
  size_t begin = std::min(line->find_first_not_of(" \t\r"), line->size());
  line->remove_prefix(begin);
  size_t end = std::min(line->find_first_of(" \t\r"), line->size());
  std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

bool parse_statement(std::string_view line, Statement* statement) {
  std::string_view subject = next_word(&line);
  statement->of_rank = subject == "rank";
  if ((subject != "rank" && subject != "cpu") || !parse_range(next_word(&line), statement)) return false;
  int parts = 0;
  for (std::string_view word = next_word(&line); !word.empty(); word = next_word(&line), ++parts)
    if (!parse_place(word, &statement->location)) return false;
  return parts > 0;
}

// Two places as one.
Location common(const Location& a, const Location& b) {
  auto same = [](int32_t x, int32_t y) { return x == y ? x : no_place; };
  return {same(a.socket, b.socket), same(a.numa, b.numa), same(a.cache, b.cache)};
}

// Calls use(statement) for each. invalid, detail = line, at the first that does not read.
template <class Use>
Status each_statement(std::string_view text, Use use) {
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = next_token(&text, '\n');
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    Statement statement;
    if (!parse_statement(line, &statement)) return invalid("not a line of a topology", number);
    use(statement);
  }
  return Status::good();
}

}  // namespace

Location locate(const char* root, const CpuSet& cpus) {
  int cpu = first_cpu(cpus);
  if (cpu == no_place) return {};
  char path[256];
  snprintf(path, sizeof path, "%s/cpu/cpu%d", root, cpu);
  Folder folder{path};
  bool one_socket = folder.lists("topology/core_siblings_list", cpus);
  return {one_socket ? folder.number("topology/physical_package_id") : no_place, numa_of(root, path, cpus),
          cache_of(folder, cpus)};
}

Status locate_made_up(std::string_view text, const CpuSet& cpus, int rank, Location* location) {
  std::unique_ptr<Location[]> of_cpu(new (std::nothrow) Location[max_cpus]);
  if (of_cpu == nullptr) return no_memory("no memory for a topology", ENOMEM);
  bool placed = false;
  STRETTO_TRY(each_statement(text, [&](const Statement& s) {
    if (s.of_rank && s.covers(rank)) *location = s.location, placed = true;
    for (int cpu = 0; !s.of_rank && cpu < max_cpus; ++cpu)
      if (s.covers(cpu)) of_cpu[cpu] = s.location;
  }));
  if (placed) return Status::good();
  int first = first_cpu(cpus);
  *location = first == no_place ? Location{} : of_cpu[first];
  for (int cpu = 0; cpu < max_cpus; ++cpu)
    if (cpus.has(cpu)) *location = common(*location, of_cpu[cpu]);
  return Status::good();
}

Status load_location(const char* path, const CpuSet& cpus, int rank, Location* location) {
  constexpr size_t largest = 64 << 10;
  std::unique_ptr<char[]> text(new (std::nothrow) char[largest]);
  if (text == nullptr) return no_memory("no memory for a topology", ENOMEM);
  size_t length;
  STRETTO_TRY(read_file(path, text.get(), largest, &length));
  if (length == 0) return refused("it is empty");
  if (length == largest) return invalid("larger than 64 KiB", 0);
  return locate_made_up({text.get(), length}, cpus, rank, location);
}

}  // namespace stretto::platform
