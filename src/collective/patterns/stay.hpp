// How long a call took all its ranks.
#pragma once
#include <algorithm>

#include "base/clock.hpp"
#include "collective/patterns/meeting.hpp"

namespace stretto::collective {

// Ticks from the last that came to the last that leaves, the same on all ranks, of which this one came at `came` and is about to
// leave.
inline Status common_time(Team& team, uint64_t came, uint64_t* took) {
  struct Stay {
    uint64_t came, left;
  } all[max_team];
  STRETTO_TRY(exchange_all(team, Stay{came, ticks()}, all));
  Stay common = all[0];
  for (int r = 1; r < team.size; ++r) common = {std::max(common.came, all[r].came), std::max(common.left, all[r].left)};
  *took = common.left - common.came;
  return Status::good();
}

}  // namespace stretto::collective
