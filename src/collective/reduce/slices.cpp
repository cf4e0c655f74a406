// Reduce, slices: each rank reduces one slice of every round, and the root collects them; see patterns/staged.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {

Status reduce_slices(Team& team, const Request& request) {
  return slice_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
