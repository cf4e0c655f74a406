// Reduce, presence-owned slices through staging cells. See patterns/presence.hpp.
#include "collective/patterns/presence.hpp"

#include "collective/algorithms.hpp"

namespace stretto::collective {

Status reduce_presence(Team& team, const Request& request) {
  return presence_staged_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
