// Allreduce, gather: everybody stages its vector and reduces all of them itself; see patterns/staged.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {

Status allreduce_gather(Team& team, const Request& request) {
  return gather_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
