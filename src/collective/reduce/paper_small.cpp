// Reduce, the first to arrive leads: a baseline from the literature. See patterns/paper.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/paper.hpp"

namespace stretto::collective {

Status reduce_paper_small(Team& team, const Request& request) {
  return paper_small_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
