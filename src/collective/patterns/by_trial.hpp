// One of several ways to do a call, whichever is the fastest here by trial (collective/trials.hpp). Through cells bytes move
// sooner where caches are good, but ranks wait for one another at each piece; by direct access they do twice a call. Which is
// better depends on the CPU, the caches between the ranks, and on other programs that want the cores too: each wait can then last
// as long as a turn of the scheduler. That comes and goes, so calls between the trials are watched.
//
// All ranks see the same trials, so all choose alike without a word: after a call that is timed they tell one another when they
// came and left. Operations that run beside others cannot be timed, and users' functions may hide the difference: they go the
// first way.
#pragma once
#include <algorithm>

#include "base/clock.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Ticks from the last that came to the last that leaves, the same on all ranks, of which this one came at `came` and is about to
// leave.
inline Status common_time(Team& team, uint64_t came, uint64_t* took) {
  struct Stay {
    uint64_t came, left;
  };
  PerRank<Stay> all(team.lists);
  STRETTO_TRY(exchange_all(team, Stay{came, ticks()}, all));
  Stay common = all[0];
  for (int r = 1; r < team.size; ++r) common = {std::max(common.came, all[r].came), std::max(common.left, all[r].left)};
  *took = common.left - common.came;
  return Status::good();
}

// request.bytes() is the same on all ranks. A way that stands there twice is tried once. `begin` is told of the first call of a
// trial that goes a way.
template <int ways, typename Begin>
Status by_trial(Team& team, const Request& request, Trials<ways>& trials, const Way (&all)[ways], Begin begin) {
  if (team.waiter.is_beside() || request.op == kernels::Op::user) return all[0](team, request);
  const size_t bytes = request.bytes();
  auto choice = trials.choose(bytes);
  while (choice.timed && choice.way > 0 && all[choice.way] == all[choice.way - 1]) {
    trials.leave_out(bytes, choice.way);
    choice = trials.choose(bytes);
  }
  if (!choice.timed && !choice.watched) return all[choice.way](team, request);
  if (choice.begins) begin(choice.way);
  const uint64_t came = ticks();
  const Status status = all[choice.way](team, request);
  if (!status.ok() && status.code != Code::truncated) return status;  // of what is truncated here the others do not know
  uint64_t took = 0;
  STRETTO_TRY(common_time(team, came, &took));
  if (choice.timed)
    trials.note(bytes, choice.way, took);
  else
    trials.watch(bytes, took);
  return status;
}
template <int ways>
Status by_trial(Team& team, const Request& request, Trials<ways>& trials, const Way (&all)[ways]) {
  return by_trial(team, request, trials, all, [](int) {});
}

template <Way first, Way second>
Status one_of(Team& team, const Request& request) {
  return by_trial(team, request, team.either_of(request.kind), {first, second});
}

// `direct_from`: the ranks from which on direct access goes first.
template <Way staged, Way direct, int direct_from = max_team + 1>
Status staged_or_direct(Team& team, const Request& request) {
  return team.size < direct_from ? one_of<staged, direct>(team, request) : one_of<direct, staged>(team, request);
}

}  // namespace stretto::collective
