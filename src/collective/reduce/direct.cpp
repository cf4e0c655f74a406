// Reduce, direct: owners read the slices of all ranks from where they are; see patterns/direct.hpp.
#include "collective/patterns/direct.hpp"

#include "collective/algorithms.hpp"

namespace stretto::collective {

Status reduce_direct(Team& team, const Request& request) {
  return direct_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
