// Barrier by tickets: whoever draws the last one says so, and all others read that one line.
#include "collective/algorithms.hpp"
#include "collective/patterns/last_ticket.hpp"

namespace stretto::collective {

Status barrier_ticket(Team& team, const Request&) {
  return meet(team);
}

}  // namespace stretto::collective
