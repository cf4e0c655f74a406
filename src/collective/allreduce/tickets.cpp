// Allreduce, last-ticket combining in two levels (patterns/domain_tickets.hpp): the last to come of each domain combines its
// vectors in rank order, and the last of these the domains' results. Nobody that combines ever waits.
#include "collective/algorithms.hpp"
#include "collective/patterns/domain_tickets.hpp"

namespace stretto::collective {

Status allreduce_tickets(Team& team, const Request& request) {
  if (!combines_by_domain(team, request)) return allreduce_ticket(team, request);
  TicketsReduction reduction(team, request);
  bool last;
  STRETTO_TRY(reduction.deposit(&last));
  if (last) STRETTO_TRY(reduction.combine_home(&last));
  return last ? reduction.combine_all() : reduction.take();
}

}  // namespace stretto::collective
