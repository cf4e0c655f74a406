// Reduce, adaptive: whichever of gather, pair and slices is the fastest here by trial (collective/trials.hpp). Between two ranks
// that depends on the CPU and on the caches between them; all three give the same result, bit for bit.
//
// Both ranks see the same trials, so both choose alike without a word: after a call that is timed they tell each other when they
// came and left. Operations that run beside others cannot be timed, and users' functions may hide the difference: they take the
// first way.
#include "collective/algorithms.hpp"
#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"
#include "collective/patterns/stay.hpp"

namespace stretto::collective {
namespace {

constexpr int swapping = 1;  // stays in the first cells

Status reduce_by(int way, Team& team, const Request& request) {
  constexpr Status (*ways[])(Team&, const Request&, Consumers) = {gather_reduce, pair_reduce, slice_reduce};
  return ways[way](team, request, Consumers::root);
}

}  // namespace

Status reduce_adaptive(Team& team, const Request& request) {
  if (team.size != 2 || team.waiter.is_beside() || request.op == kernels::Op::user) return reduce_by(0, team, request);
  const auto choice = team.reductions.choose(request.bytes());
  if (!choice.timed) return reduce_by(choice.way, team, request);
  if (choice.begins && choice.way != swapping) Rounds::warm_up(team, true);
  const uint64_t came = ticks();
  uint64_t took;
  STRETTO_TRY(reduce_by(choice.way, team, request));
  STRETTO_TRY(common_time(team, came, &took));
  team.reductions.note(request.bytes(), choice.way, took);
  return Status::good();
}

}  // namespace stretto::collective
