#include "collective/patterns/combine.hpp"

namespace stretto::collective {

// A user's function overwrites its right operand, so it is folded from the right: a0 op (a1 op (... op ap-1)).
static void combine_by_user(const Request& request, const void* const* inputs, int p, void* out, size_t n) {
  kernels::copy(out, inputs[p - 1], n * request.element);
  for (int r = p - 2; r >= 0; --r) request.user.apply(request.user.context, inputs[r], out, n);
}

void combine(const Request& request, const void* const* inputs, int p, void* out, size_t n) {
  if (n == 0) return;
  if (request.op == kernels::Op::user)
    combine_by_user(request, inputs, p, out, n);
  else
    kernels::reduce(request.op, request.type, inputs, p, out, n);
}

void combine_before(const Request& request, const void* left, void* inout, size_t n) {
  if (request.op == kernels::Op::user) return request.user.apply(request.user.context, left, inout, n);
  const void* inputs[] = {left, inout};
  kernels::reduce(request.op, request.type, inputs, 2, inout, n);
}

}  // namespace stretto::collective
