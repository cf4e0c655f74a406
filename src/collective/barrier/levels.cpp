// Barrier, levels: ranks tell the leader of their domain, the leaders tell each other, and each its ranks. One line per domain
// crosses to each other domain.
#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {
namespace {

Status tell(Exchange& exchange) {
  void* unused;
  STRETTO_TRY(exchange.claim(&unused));
  exchange.post(0);
  return Status::good();
}

Status hear(Exchange& exchange, int rank) {
  const void* nothing;
  return exchange.read(rank, &nothing);
}

Status lead(const Team& team, int home, Exchange& inner, Exchange& outer, Exchange& back) {
  const Domains& domains = team.domains;
  for (int k = 1; k < domains.size(home); ++k) STRETTO_TRY(hear(inner, domains.member(home, k)));
  STRETTO_TRY(tell(outer));
  for (int d = 0; d < domains.count(); ++d)
    if (d != home) STRETTO_TRY(hear(outer, domains.leader(d)));
  return tell(back);
}

}  // namespace

Status barrier_levels(Team& team, const Request& request) {
  if (team.domains.count() == 1) return barrier_flat(team, request);
  int home = team.domains.of(team.rank), leader = team.domains.leader(home);
  uint64_t begun = team.exchanges;
  Exchange inner(team), outer(team), back(team);
  if (team.rank == leader) {
    STRETTO_TRY(lead(team, home, inner, outer, back));
  } else {
    STRETTO_TRY(tell(inner));
    STRETTO_TRY(hear(back, leader));
  }
  for (int r = 0; r < team.size; ++r) team.seen_done(r, begun);  // all have come, so all have left what was before
  return Status::good();
}

}  // namespace stretto::collective
