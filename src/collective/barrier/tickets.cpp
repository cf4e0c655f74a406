// Barrier by tickets in two levels: the last of each domain draws one for it, and the last of these tells all domains.
#include "collective/algorithms.hpp"
#include "collective/patterns/domain_tickets.hpp"

namespace stretto::collective {

Status barrier_tickets(Team& team, const Request& request) {
  const int domains = team.domains.count();
  if (domains == 1) return barrier_ticket(team, request);
  DomainTickets tickets(team, DomainTickets::meetings);
  if (!tickets.draw() || !tickets.draw_for_all())
    return team.waiter.until(tickets.board(tickets.home()).met, tickets.number(), any_rank);
  for (int d = 0; d < domains; ++d) team.waiter.announce(tickets.board(d).met, tickets.number());
  return Status::good();
}

}  // namespace stretto::collective
