// Allreduce, flat: see patterns/flat.hpp; the consumers are all ranks.
#include "collective/patterns/flat.hpp"

#include "collective/algorithms.hpp"

namespace stretto::collective {

Status allreduce_flat(Team& team, const Request& request) {
  return flat_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
