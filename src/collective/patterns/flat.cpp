#include "collective/patterns/flat.hpp"

#include <string.h>

#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

namespace {

// Shows this rank's vector to the others.
Status post_own(Exchange& exchange, const Request& request) {
  void* payload;
  STRETTO_TRY(exchange.claim(&payload));
  memcpy(payload, request.input, request.bytes());
  exchange.post();
  return Status::good();
}

// Where this rank's own vector is read from: a user's function must not find it in the output.
Status own_input(Team& team, const Request& request, const void** input) {
  *input = request.input;
  if (request.op != kernels::Op::user || request.input != request.output) return Status::good();
  void* copy = team.scratch.get(request.bytes());
  if (copy == nullptr) return no_memory("no memory for a reduction in place");
  *input = memcpy(copy, request.input, request.bytes());
  return Status::good();
}

}  // namespace

Status flat_reduce(Team& team, const Request& request, Consumers consumers) {
  const bool consumer = consumes(consumers, request, team.rank);
  Exchange exchange(team);
  if (consumers == Consumers::all || !consumer) STRETTO_TRY(post_own(exchange, request));
  if (consumer) {
    const void** inputs = team.pointers();
    for (int r = 0; r < team.size; ++r)
      if (r != team.rank) STRETTO_TRY(exchange.read(r, &inputs[r]));
    STRETTO_TRY(own_input(team, request, &inputs[team.rank]));
    combine(request, inputs, team.size, request.output, request.count);
  }
  if (consumers == Consumers::root) exchange.finish();
  return Status::good();
}

}  // namespace stretto::collective
