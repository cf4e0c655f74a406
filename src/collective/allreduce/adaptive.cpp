// Allreduce, adaptive: through cells (of two ranks pair or slices) or by direct access, by trial (patterns/by_trial.hpp).
#include "collective/algorithms.hpp"

namespace stretto::collective {

Status allreduce_adaptive(Team& team, const Request& request) {
  const Way cells = team.size == 2 ? allreduce_pair : allreduce_slices;
  return by_trial(team, request, team.for_all, {cells, allreduce_slices, allreduce_direct});
}

}  // namespace stretto::collective
