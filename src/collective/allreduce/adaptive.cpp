// Allreduce, adaptive: through cells (of two ranks pair or slices) or by direct access, whichever is the fastest here by trial
// (collective/trials.hpp). Through cells bytes move sooner where caches are good, but the ranks wait for one another some dozen
// times a call; by direct access they do twice. Where other programs want the cores too, each of these waits can last as long as
// a turn of the scheduler. That comes and goes, so calls between the trials are watched.
//
// All ranks see the same trials, so all choose alike without a word: after a call that is timed they tell one another when they
// came and left. Operations that run beside others cannot be timed, and users' functions may hide the difference: they go through
// cells.
#include "collective/algorithms.hpp"
#include "collective/patterns/staged.hpp"
#include "collective/patterns/stay.hpp"

namespace stretto::collective {
namespace {

enum Way { pair, slices, direct };  // of more than two ranks the first is slices too

Status allreduce_by(int way, Team& team, const Request& request) {
  if (way == direct) return allreduce_direct(team, request);
  return way == pair && team.size == 2 ? allreduce_pair(team, request) : allreduce_slices(team, request);
}

}  // namespace

Status allreduce_adaptive(Team& team, const Request& request) {
  if (team.waiter.is_beside() || request.op == kernels::Op::user) return allreduce_by(pair, team, request);
  auto choice = team.for_all.choose(request.bytes());
  if (choice.timed && choice.way == slices && team.size != 2) {
    team.for_all.leave_out(request.bytes(), slices);
    choice = team.for_all.choose(request.bytes());
  }
  if (!choice.timed && !choice.watched) return allreduce_by(choice.way, team, request);
  const uint64_t came = ticks();
  uint64_t took;
  STRETTO_TRY(allreduce_by(choice.way, team, request));
  STRETTO_TRY(common_time(team, came, &took));
  if (choice.timed)
    team.for_all.note(request.bytes(), choice.way, took);
  else
    team.for_all.watch(request.bytes(), took);
  return Status::good();
}

}  // namespace stretto::collective
