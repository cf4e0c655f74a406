#include "reduction.hpp"

#include <algorithm>

#include "calls.hpp"

namespace differential {
namespace {

bool reducible(const BaseType& type) {
  return type.family != Family::opaque;
}

Reduction with_predefined_op(Context& context) {
  Random& random = context.agreed;
  for (;;) {
    const BaseType& base = base_types()[random.below(base_types().size())];
    std::vector<Operation> ops = reducible(base) ? operations_on(base) : std::vector<Operation>{};
    if (ops.empty()) continue;
    return {Layout(base),
            draw_elements(random, base, context.limits.largest),
            ops[random.below(ops.size())],
            -1,
            false,
            true,
            false,
            false,
            false};
  }
}

Reduction with_user_op(Context& context) {
  Random& random = context.agreed;
  const UserOperation& user = user_operations()[random.below(user_operations().size())];
  const BaseType& base = base_type("MPI_UINT32_T");
  int leaves = user.group * int(1 + random.below(6));
  bool simple = !context.limits.derived || random.one_in(3);
  Layout layout = user.group > 1 || !simple ? random_layout(random, base, leaves) : Layout(base);
  if (simple && user.group > 1) layout = contiguous(Layout(base), leaves);
  size_t elements = draw_elements(random, base, context.limits.largest / 4);
  size_t count = elements / layout.leaves().size();
  return {std::move(layout), count, user.operation, -1, false, true, false, false, false};
}

}  // namespace

Reduction draw_operands(Context& context) {
  return context.agreed.one_in(5) ? with_user_op(context) : with_predefined_op(context);
}

std::string wrong_value(const Context& context, const Buffer& result, const Buffer& oracle, const Buffer* scale) {
  if (result.same_bytes(oracle)) return "";
  // Two ranks: one rounding, the same in any order; but of a complex product compilers for ARM fuse some.
#if defined(__aarch64__)
  constexpr double of_products = 1;
#else
  constexpr double of_products = 0;
#endif
  const double of_sums = context.size() <= 2 ? 0 : 2.0 * context.size();
  for (size_t i = 0; i < result.elements(); ++i) {
    const BaseType& base = result.base(i);
    bool same = true;
    for (auto [offset, length] : base.significant)
      same = same && std::equal(result.element(i) + offset, result.element(i) + offset + length, oracle.element(i) + offset);
    const double slack = base.family == Family::complex ? std::max(of_sums, of_products) : of_sums;
    if (!same && !base.close(result.element(i), oracle.element(i), scale ? scale->element(i) : nullptr, slack))
      return "element " + std::to_string(i) + " is wrong";
  }
  return "";
}

}  // namespace differential
