// Bcast, levels: the root posts the message, one rank of each other domain reads it and posts it again for its neighbours.
#include <string.h>

#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {
namespace {

Status post(Exchange& exchange, const void* data, uint32_t note) {
  const size_t bytes = std::min(bytes_of_note(note), slot_payload);
  void* payload;
  STRETTO_TRY(exchange.claim(&payload));
  memcpy(payload, data, bytes);
  exchange.post(bytes, note);
  return Status::good();
}

}  // namespace

Status bcast_levels(Team& team, const Request& request) {
  const Domains& domains = team.domains;
  if (domains.count() == 1) return bcast_flat(team, request);
  int home = domains.of(team.rank), leader = domains.leader(home, request.root);
  Exchange outer(team), inner(team);
  Status received;
  if (team.rank == request.root) {
    STRETTO_TRY(post(outer, request.input, note_of(request)));
  } else {
    const bool from_root = team.rank == leader || leader == request.root;
    Exchange& from = from_root ? outer : inner;
    const int giver = from_root ? request.root : leader;
    const void* message = nullptr;
    received = receive_message(from, request, giver, &message);
    if (received.code == Code::peer_lost || received.code == Code::disagreed) return received;
    if (team.rank == leader) STRETTO_TRY(post(inner, message, from.note(giver)));
  }
  inner.finish();
  return received;
}

}  // namespace stretto::collective
