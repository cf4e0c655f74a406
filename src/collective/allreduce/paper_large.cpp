// Allreduce, a chain in the order of arrival: a baseline from the literature. See patterns/paper.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/paper.hpp"

namespace stretto::collective {

Status allreduce_paper_large(Team& team, const Request& request) {
  return paper_large_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
