// Bcast between two ranks, handover: the root writes to the other's buffer while the other reads from the root's; where they do
// not meet it is staged. See patterns/handover.hpp. More ranks: staged.
#include "collective/patterns/handover.hpp"

#include "collective/algorithms.hpp"

namespace stretto::collective {

Status bcast_handover(Team& team, const Request& request) {
  if (team.size != 2) return bcast_staged(team, request);
  void* data = team.rank == request.root ? const_cast<void*>(request.input) : request.output;
  size_t given = 0;
  const Status status = hand_over(team, request.kind, request.root, {data, data == nullptr ? 0 : request.bytes()}, &given);
  if (status.ok()) request.came(0, given);
  return status;
}

}  // namespace stretto::collective
