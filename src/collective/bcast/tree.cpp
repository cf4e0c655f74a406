// Bcast, tree: everybody reads the message from the buffer of a rank that is near and has it; see patterns/tree.hpp. What cannot
// be read, or is refused in mid-course, is staged.
#include "collective/patterns/tree.hpp"

#include <algorithm>

#include "collective/algorithms.hpp"
#include "collective/patterns/meeting.hpp"

namespace stretto::collective {
namespace {

// Whether all that will be read can be; and, where copying alone is no gain, whether some of it is mapped.
bool readable(const Team& team, const Request& request, const DirectFacts* facts, transport::Reach common) {
  bool mapped = team.unmapped == nullptr;
  for (int r = 0; r < team.size; ++r) {
    transport::Window window = r == request.root ? facts[r].input : facts[r].result;
    if (!common.reads(window)) return false;
    mapped = mapped || common.writes(window);
  }
  return mapped;
}

}  // namespace

Status bcast_tree(Team& team, const Request& request) {
  DirectFacts own;
  PerRank<DirectFacts> facts(team.lists);
  if (team.direct && request.output != nullptr)
    own = {team.direct->window(request.input), team.direct->window(request.output), team.direct->reach()};
  transport::Reach common;
  STRETTO_TRY(exchange_facts(team, request, own, facts, &common));
  if (is_uneven(team, request, facts)) return broadcast_uneven(team, request, facts);
  if (!readable(team, request, facts, common)) return without_direct(team, request, [&] { return bcast_domains(team, request); });
  uint32_t served;
  PerRank<uint32_t> all_served(team.lists);
  STRETTO_TRY(read_along_tree(team, request, facts, common, &served));
  STRETTO_TRY(exchange_all(team, served, all_served));  // all may leave
  if (!served) team.direct.reset();                     // refused once: never asked again
  return std::count(all_served.of, all_served + team.size, 0u) > 0 ? bcast_domains(team, request) : Status::good();
}

}  // namespace stretto::collective
