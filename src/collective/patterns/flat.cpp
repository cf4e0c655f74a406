#include "collective/patterns/flat.hpp"

#include <string.h>

#include "collective/patterns/meeting.hpp"

namespace stretto::collective {

namespace {

// A user's function works in the output, where it must not find this rank's own vector.
bool output_is_input(const Request& request) {
  return request.op == kernels::Op::user && request.input == request.output;
}

// Reads the vectors of all others, in an exchange or a meeting, and reduces. `own`: where this rank's vector stands.
template <typename Event>
Status read_and_combine(Event& event, Team& team, const Request& request, const void* own) {
  const void** inputs = team.pointers();
  Status alike;
  for (int r = 0; r < team.size; ++r)
    if (r != team.rank) STRETTO_TRY(read_alike(event, request, r, &inputs[r], &alike));
  if (!alike.ok()) return alike;
  inputs[team.rank] = own;
  combine(request, inputs, team.size, request.output, request.count);
  return Status::good();
}

Status reduce_to_all(Team& team, const Request& request) {
  Meeting meeting(team);
  void* payload = meeting.payload();
  memcpy(payload, request.input, request.bytes());
  meeting.post(request.bytes(), note_of(request));
  STRETTO_TRY(read_and_combine(meeting, team, request, output_is_input(request) ? payload : request.input));
  meeting.fetch_next(request.bytes());
  return Status::good();
}

Status reduce_to_root(Team& team, const Request& request) {
  const bool is_root = team.rank == request.root;
  Exchange exchange(team);
  void* payload = nullptr;
  if (!is_root || output_is_input(request)) {
    STRETTO_TRY(exchange.claim(&payload));
    memcpy(payload, request.input, request.bytes());
  }
  Status status;
  if (is_root)
    status = read_and_combine(exchange, team, request, payload ? payload : request.input);
  else
    exchange.post(request.bytes(), note_of(request));
  exchange.finish();
  if (!is_root) exchange.fetch_next(request.bytes());
  return status;
}

}  // namespace

Status flat_reduce(Team& team, const Request& request, Consumers consumers) {
  return consumers == Consumers::all ? reduce_to_all(team, request) : reduce_to_root(team, request);
}

}  // namespace stretto::collective
