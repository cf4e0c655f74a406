#include "collective/patterns/by_domain.hpp"

#include "kernels/plan.hpp"

namespace stretto::collective {
namespace {

// Any order and grouping of operands gives the same bits.
bool exact(kernels::Op op, kernels::Type type) {
  using kernels::Group;
  Group group = kernels::group_of(type);
  bool bits = op == kernels::Op::band || op == kernels::Op::bor || op == kernels::Op::bxor;
  return bits || group == Group::integer || group == Group::logical || group == Group::byte;
}

}  // namespace

bool combines_by_domain(const Team& team, const Request& request) {
  const Domains& domains = team.domains;
  if (domains.count() == 1 || request.op == kernels::Op::user) return false;
  return domains.aligned() || exact(request.op, request.type) || (team.any_order && domains.contiguous());
}

}  // namespace stretto::collective
