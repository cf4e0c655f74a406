// Allreduce, levels: flat within each domain, then among the domains; see patterns/by_domain.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/by_domain.hpp"
#include "collective/patterns/flat.hpp"

namespace stretto::collective {

Status allreduce_levels(Team& team, const Request& request) {
  return combines_by_domain(team, request) ? levels_reduce(team, request, Consumers::all)
                                           : flat_reduce(team, request, Consumers::all);
}

}  // namespace stretto::collective
