// Reduce, flat: see patterns/flat.hpp; the consumers are the root alone.
#include "collective/patterns/flat.hpp"

#include "collective/algorithms.hpp"

namespace stretto::collective {

Status reduce_flat(Team& team, const Request& request) {
  return flat_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
