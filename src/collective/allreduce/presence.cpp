// Allreduce, presence-owned slices through staging cells. See patterns/presence.hpp.
#include "collective/patterns/presence.hpp"

#include "collective/algorithms.hpp"

namespace stretto::collective {

Status allreduce_presence(Team& team, const Request& request) {
  return presence_staged_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
