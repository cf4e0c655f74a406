// Bcast, levels: the root posts the message, one rank of each other domain reads it and posts it again for its neighbours.
#include <string.h>

#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {
namespace {

Status post(Exchange& exchange, const void* data, size_t bytes) {
  void* payload;
  STRETTO_TRY(exchange.claim(&payload));
  memcpy(payload, data, bytes);
  exchange.post(bytes);
  return Status::good();
}

}  // namespace

Status bcast_levels(Team& team, const Request& request) {
  const Domains& domains = team.domains;
  if (domains.count() == 1) return bcast_flat(team, request);
  int home = domains.of(team.rank), leader = domains.leader(home, request.root);
  Exchange outer(team), inner(team);
  if (team.rank == request.root) {
    STRETTO_TRY(post(outer, request.input, request.bytes()));
  } else {
    const void* data;
    bool from_root = team.rank == leader || leader == request.root;
    STRETTO_TRY(from_root ? outer.read(request.root, &data) : inner.read(leader, &data));
    if (team.rank == leader) STRETTO_TRY(post(inner, data, request.bytes()));
    memcpy(request.output, data, request.bytes());
  }
  inner.finish();
  return Status::good();
}

}  // namespace stretto::collective
