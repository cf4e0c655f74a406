// Allreduce, slices: each rank reduces one slice of every round, and everybody collects them; see patterns/staged.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {

Status allreduce_slices(Team& team, const Request& request) {
  return slice_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
