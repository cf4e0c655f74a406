// Bcast, staged: the root copies the message into its cells piece by piece, and all others copy each piece out as it comes. The
// two copies overlap; a piece is read by everybody while it is in cache. Per byte 2 loads + stores at every rank. The root leaves
// when all pieces are staged: what its cells hold (1 MiB, to 8 ranks) it does not wait for anybody with.
#include "collective/patterns/staged.hpp"

#include "collective/algorithms.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

Status send(const Request& request, Rounds& rounds) {
  rounds.drained_all();
  for (uint32_t i = 0; i < rounds.count(); ++i) STRETTO_TRY(rounds.stage(i, request.input));
  rounds.fetch_next();
  return Status::good();
}

Status receive(const Request& request, Rounds& rounds, kernels::Store store) {
  if (request.output == nullptr) {  // takes part without wanting the message, and leaves its cells to whoever stores to them
    rounds.drained_all();
    return rounds.count() > 0 ? rounds.wait_filled(request.root, rounds.count() - 1) : Status::good();
  }
  for (uint32_t i = 0; i < rounds.count(); ++i) {
    Range range = rounds.range(i);
    const void* data;
    STRETTO_TRY(rounds.wait_filled(request.root, i));
    STRETTO_TRY(rounds.get(request.root, i, range, &data));
    char* out = static_cast<char*>(request.output) + rounds.at(range);
    kernels::copy(out, data, rounds.bytes(range), store);
    rounds.drained(i);
  }
  return Status::good();
}

}  // namespace

Status broadcast_staged(Team& team, const Request& request, kernels::Store store) {
  Rounds rounds(team, request, staged_piece(team, request.bytes()));
  return team.rank == request.root ? send(request, rounds) : receive(request, rounds, store);
}

Status bcast_staged(Team& team, const Request& request) {
  return broadcast_staged(team, request, team.store_of(request.bytes()));
}

}  // namespace stretto::collective
