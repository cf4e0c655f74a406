#include "collective/patterns/handover.hpp"
#include "collective/patterns/parcels.hpp"
#include "collective/patterns/shipment.hpp"

namespace stretto::collective {

Status ship_handover(Team& team, const Request& request, Route route) {
  if (team.size != 2 || route.ends == Ends::all) return ship_staged(team, request, route);
  const int giver = route.ends == Ends::from_root ? request.root : 1 - request.root, other = 1 - team.rank;
  const bool gives = team.rank == giver;
  Parcels parcels(team, request, route);
  Handover handover(team, request.kind, giver, gives ? parcels.given(other) : parcels.room(other), parcels.store());
  STRETTO_TRY(handover.begin());
  const bool early = handover.has_time();
  if (early) parcels.keep_own();
  STRETTO_TRY(handover.agree());
  const bool meanwhile = !early && handover.is_copied();  // then the taker copies more; else it waits for the giver
  if (meanwhile) parcels.keep_own();
  STRETTO_TRY(handover.move());
  if (!early && !meanwhile) parcels.keep_own();
  STRETTO_TRY(handover.note_time());
  if (!gives) parcels.expect(other, handover.given_bytes());
  return parcels.outcome();
}

}  // namespace stretto::collective
