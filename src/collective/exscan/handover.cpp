// Exscan between two ranks, handover: what the second gets is what the first gives. See patterns/handover.hpp. More ranks:
// staged.
#include "collective/patterns/handover.hpp"

#include "collective/algorithms.hpp"

namespace stretto::collective {

Status exscan_handover(Team& team, const Request& request) {
  if (team.size != 2) return prefix_staged(team, request, Prefix::before_own);
  void* data = team.rank == 0 ? const_cast<void*>(request.input) : request.output;
  size_t given;
  return hand_over(team, request.kind, 0, {data, request.bytes()}, &given);
}

}  // namespace stretto::collective
