// Allreduce, presence-owned slices over memory that all ranks can load and store. See patterns/presence.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/presence.hpp"

namespace stretto::collective {

Status allreduce_presence_direct(Team& team, const Request& request) {
  return presence_direct_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
