#include "collective/patterns/flat.hpp"

#include <string.h>

#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

namespace {

// Copies this rank's vector into its slot.
Status deposit(Exchange& exchange, const Request& request, void** payload) {
  STRETTO_TRY(exchange.claim(payload));
  memcpy(*payload, request.input, request.bytes());
  return Status::good();
}

// A user's function works in the output, where it must not find this rank's own vector.
bool output_is_input(const Request& request) {
  return request.op == kernels::Op::user && request.input == request.output;
}

}  // namespace

Status flat_reduce(Team& team, const Request& request, Consumers consumers) {
  const bool consumer = consumes(consumers, request, team.rank);
  const bool shows = consumers == Consumers::all || !consumer;
  Exchange exchange(team);
  void* deposited = nullptr;
  if (shows || output_is_input(request)) STRETTO_TRY(deposit(exchange, request, &deposited));
  if (shows) exchange.post();
  if (consumer) {
    const void** inputs = team.pointers();
    for (int r = 0; r < team.size; ++r)
      if (r != team.rank) STRETTO_TRY(exchange.read(r, &inputs[r]));
    inputs[team.rank] = output_is_input(request) ? deposited : request.input;
    combine(request, inputs, team.size, request.output, request.count);
  }
  if (consumers == Consumers::root) exchange.finish();
  return Status::good();
}

}  // namespace stretto::collective
