// Barrier, flat: everybody announces a meeting without payload and waits for everybody's.
#include "collective/algorithms.hpp"
#include "collective/patterns/meeting.hpp"

namespace stretto::collective {

Status barrier_flat(Team& team, const Request&) {
  Meeting meeting(team);
  meeting.post(0);
  for (int r = 0; r < team.size; ++r) {
    if (r == team.rank) continue;
    const void* nothing;
    STRETTO_TRY(meeting.read(r, &nothing));
  }
  meeting.fetch_next(0);
  return Status::good();
}

}  // namespace stretto::collective
