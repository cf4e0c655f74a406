// Reduce, adaptive: gather, slices, or of two ranks pair, of more by direct access: by trial (patterns/by_trial.hpp). Between two
// ranks that depends on the CPU and on the caches between them; all give the same result, bit for bit.
#include "collective/algorithms.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {

Status reduce_adaptive(Team& team, const Request& request) {
  if (team.size != 2) return by_trial(team, request, team.reductions, {reduce_gather, reduce_slices, reduce_direct});
  constexpr int swapping = 1;  // stays in the first cells
  const auto warm_up = [&team](int way) {
    if (way != swapping) Rounds::warm_up(team, true);
  };
  return by_trial(team, request, team.reductions, {reduce_gather, reduce_pair, reduce_slices}, warm_up);
}

}  // namespace stretto::collective
