#include "collective/patterns/flat.hpp"

#include <string.h>

#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

Status flat_reduce(Team& team, const Request& request, Consumers consumers) {
  Exchange exchange(team);
  void* payload;
  STRETTO_TRY(exchange.claim(&payload));
  memcpy(payload, request.input, request.bytes());
  exchange.post();
  if (consumes(consumers, request, team.rank)) {
    const void** inputs = team.pointers();
    for (int r = 0; r < team.size; ++r) STRETTO_TRY(exchange.read(r, &inputs[r]));
    combine(request, inputs, team.size, request.output, request.count);
  }
  if (consumers == Consumers::all)
    exchange.finish_all(request.bytes());
  else
    exchange.finish();
  return Status::good();
}

}  // namespace stretto::collective
