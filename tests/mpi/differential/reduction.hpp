// A reduction to be compared: its operation, type and count as drawn, and how results may differ.
#pragma once
#include <string>

#include "compare.hpp"

namespace differential {

struct Reduction {
  Layout layout;
  size_t count;
  Operation op;
  int root;  // -1: Allreduce
  bool in_place, receives;
  bool large, repeat, compare_ranks;
  bool product() const { return op.handle == MPI_PROD; }
  const BaseType& base() const { return *layout.leaves()[0].base; }
};

// Operation, layout and count, agreed; the rest as in an Allreduce.
Reduction draw_operands(Context& context);

// Empty, or what is wrong with the value of some element. scale: the sums of magnitudes, where known.
std::string wrong_value(const Context& context, const Buffer& result, const Buffer& oracle, const Buffer* scale);

}  // namespace differential
