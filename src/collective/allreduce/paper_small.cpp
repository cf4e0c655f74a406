// Allreduce, the first to arrive leads: a baseline from the literature. See patterns/paper.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/paper.hpp"

namespace stretto::collective {

Status allreduce_paper_small(Team& team, const Request& request) {
  return paper_small_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
