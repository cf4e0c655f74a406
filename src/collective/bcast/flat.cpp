// Bcast, flat: the root posts the message in its slot; the others copy it out. The root does not wait, unless a ring ahead.
#include <string.h>

#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

Status bcast_flat(Team& team, const Request& request) {
  Exchange exchange(team);
  Status received;
  if (team.rank == request.root) {
    void* payload;
    STRETTO_TRY(exchange.claim(&payload));
    memcpy(payload, request.input, request.bytes());
    exchange.post(request.bytes(), note_of(request));
    exchange.fetch_next(request.bytes());
  } else {
    const void* message;
    received = receive_message(exchange, request, request.root, &message);
    if (received.code == Code::peer_lost) return received;
  }
  exchange.finish();
  return received;
}

}  // namespace stretto::collective
