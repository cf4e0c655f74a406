// Bcast, flat: the root posts the message in its slot; the others copy it out. The root does not wait, unless a ring ahead.
#include <string.h>

#include <algorithm>

#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

Status bcast_flat(Team& team, const Request& request) {
  Exchange exchange(team);
  Status alike;
  if (team.rank == request.root) {
    void* payload;
    STRETTO_TRY(exchange.claim(&payload));
    memcpy(payload, request.input, request.bytes());
    exchange.post(request.bytes(), note_of(request));
    exchange.fetch_next(request.bytes());
  } else {
    const void* payload;
    STRETTO_TRY(read_alike(exchange, request, request.root, &payload, &alike));
    const size_t bytes = bytes_of_note(exchange.note(request.root));
    if (alike.code == Code::truncated && bytes < request.bytes()) alike = {};  // as MPI takes shorter messages
    if (alike.code != Code::disagreed) memcpy(request.output, payload, std::min(bytes, request.bytes()));
  }
  exchange.finish();
  return alike;
}

}  // namespace stretto::collective
