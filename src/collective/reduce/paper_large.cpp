// Reduce, a chain in the order of arrival: a baseline from the literature. See patterns/paper.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/paper.hpp"

namespace stretto::collective {

Status reduce_paper_large(Team& team, const Request& request) {
  return paper_large_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
