// Reduce, domains: owner slices within each domain, then among the domains; see patterns/by_domain.hpp.
#include "collective/algorithms.hpp"
#include "collective/patterns/by_domain.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {

Status reduce_domains(Team& team, const Request& request) {
  return combines_by_domain(team, request) ? domain_reduce(team, request, Consumers::root)
                                           : slice_reduce(team, request, Consumers::root);
}

}  // namespace stretto::collective
