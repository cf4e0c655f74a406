// The arithmetic of a request over the contributions of all ranks, in rank order.
#pragma once
#include "collective/request.hpp"

namespace stretto::collective {

// Who gets the result of a reduction: every rank, or the root alone.
enum class Consumers { all, root };

inline bool consumes(Consumers consumers, const Request& request, int rank) {
  return consumers == Consumers::all || rank == request.root;
}

// out[i] = inputs[0][i] op ... op inputs[p-1][i] for n elements. With a user's op, `out` is none of the inputs.
void combine(const Request& request, const void* const* inputs, int p, void* out, size_t n);

// inout[i] = left[i] op inout[i] for n elements.
void combine_before(const Request& request, const void* left, void* inout, size_t n);

}  // namespace stretto::collective
