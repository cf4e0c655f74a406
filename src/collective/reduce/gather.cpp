// Reduce, gather: everybody stages its vector, the root reduces all of them; see patterns/staged.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {

Status reduce_gather(Team& team, const Request& request) {
  return gather_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
