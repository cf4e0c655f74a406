// Allreduce, pair: two ranks reduce one half each, in lines that change hands; see patterns/staged.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {

Status allreduce_pair(Team& team, const Request& request) {
  return pair_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
