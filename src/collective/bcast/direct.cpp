// Bcast, direct: everybody reads the message from the root's buffer. See patterns/direct.hpp for what happens when that is
// refused.
#include "collective/patterns/direct.hpp"

#include <algorithm>

#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

Status bcast_direct(Team& team, const Request& request) {
  DirectFacts own, facts[max_team];
  if (team.direct) own = {team.direct->window(request.input).base, 0, 1, 0};
  bool all_able;
  STRETTO_TRY(exchange_facts(team, own, facts, &all_able));
  if (!all_able) return bcast_staged(team, request);

  uint32_t received = 1, all_received[max_team];
  if (team.rank != request.root) {
    const void* data;
    Status got = team.direct->get(request.root, {facts[request.root].input}, {0, 0}, 0, request.bytes(), request.output, &data);
    received = got.ok();
    if (received && data != request.output) kernels::copy(request.output, data, request.bytes());
  }
  STRETTO_TRY(exchange_all(team, received, all_received));  // the root may leave
  if (!received) team.direct.reset();
  if (std::count(all_received, all_received + team.size, 0u) > 0) return bcast_staged(team, request);
  return Status::good();
}

}  // namespace stretto::collective
