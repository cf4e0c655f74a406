// With whom this process shares its claim to processor time.
#pragma once
#include <cstdint>
#include <string_view>

namespace stretto::platform {

// The kernel divides time among groups first: control groups, or, where a process stands in none, sessions ("autogroups"). A
// yield passes the CPU on within the group; between groups, whoever yields in a loop uses up the share of its group.
// Equal on processes of one group, different on others.
uint64_t scheduling_group();

// The number in /proc/self/autogroup, "/autogroup-25 nice 0"; 0 when it does not read so.
uint64_t parse_autogroup(std::string_view text);

}  // namespace stretto::platform
