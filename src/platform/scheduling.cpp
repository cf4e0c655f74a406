#include "platform/scheduling.hpp"

#include "platform/cgroup.hpp"
#include "platform/parse.hpp"

namespace stretto::platform {

uint64_t parse_autogroup(std::string_view text) {
  constexpr std::string_view prefix = "/autogroup-";
  uint64_t number = 0;
  if (!text.starts_with(prefix)) return 0;
  text.remove_prefix(prefix.size());
  return parse_number(next_token(&text, ' '), &number) ? number : 0;
}

uint64_t scheduling_group() {
  constexpr uint64_t is_control_group = uint64_t(1) << 63;
  char text[64];
  const uint64_t group = cgroup_scheduled_as(find_own_cgroup("cpu"));
  if (group != 0) return group | is_control_group;
  if (read_text("/proc/sys/kernel/sched_autogroup_enabled", text, sizeof text).starts_with('0')) return 0;
  return parse_autogroup(read_text("/proc/self/autogroup", text, sizeof text));
}

}  // namespace stretto::platform
