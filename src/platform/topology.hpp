// Where CPUs stand: socket, NUMA node and last shared cache, from sysfs, or from a file that makes a machine up.
//
// A made-up topology has one statement a line, `#` begins a comment:
//
//     cpu  0..15   socket=0 numa=0 cache=0
//     rank 4..7    socket=1 numa=2 cache=5
//
// FROM..TO are both inclusive; one number stands for itself. A place of a rank (its number among the ranks of its node) holds
// whatever CPUs it may use; places of CPUs stand in for those of sysfs, and CPUs without one are unknown. Later lines win.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/status.hpp"
#include "platform/cpus.hpp"

namespace stretto::platform {

inline constexpr int32_t no_place = -1;  // unknown, or several

struct Location {
  int32_t socket = no_place;
  int32_t numa = no_place;
  int32_t cache = no_place;  // the first CPU of those that share the last-level cache, or a number of the file
  bool operator==(const Location&) const = default;
};

// What all these CPUs have in common by sysfs, of which `root` is usually "/sys/devices/system"; no_place where they differ.
// Looks at the files of one CPU, whose lists tell which others stand beside it.
Location locate(const char* root, const CpuSet& cpus);

// The place of a rank in a made-up topology. invalid, detail = line number, when the text does not read.
Status locate_made_up(std::string_view text, const CpuSet& cpus, int rank, Location* location);

// The same from a file. refused when it cannot be read.
Status load_location(const char* path, const CpuSet& cpus, int rank, Location* location);

}  // namespace stretto::platform
