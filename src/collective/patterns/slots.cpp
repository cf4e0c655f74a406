#include "collective/patterns/slots.hpp"

#include <algorithm>

#include "collective/algorithms.hpp"

namespace stretto::collective {
namespace {

using Run = Status (*)(Team&, const Request&);

Run flat_form(Kind kind) {
  switch (kind) {
    case Kind::barrier:
      return barrier_flat;
    case Kind::bcast:
      return bcast_flat;
    case Kind::reduce:
      return reduce_flat;
    case Kind::allreduce:
      return allreduce_flat;
    default:
      return nullptr;
  }
}

}  // namespace

bool fits_in_slots(const Request& request) {
  return flat_form(request.kind) != nullptr && request.element <= slot_payload;
}

Status run_in_slots(Team& team, const Request& request) {
  const Run run = flat_form(request.kind);
  const size_t most = slot_payload / request.element;
  for (size_t done = 0; done < request.count; done += most) {
    Request piece = request;
    piece.gets = nullptr;  // a Bcast tells what came of the whole
    piece.count = std::min(most, request.count - done);
    const size_t at = done * request.element;
    if (request.input) piece.input = static_cast<const char*>(request.input) + at;
    if (request.output) piece.output = static_cast<char*>(request.output) + at;
    STRETTO_TRY(run(team, piece));
  }
  return Status::good();
}

}  // namespace stretto::collective
