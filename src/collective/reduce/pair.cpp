// Reduce, pair: two ranks reduce one half each, in lines that change hands; see patterns/staged.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {

Status reduce_pair(Team& team, const Request& request) {
  return pair_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
