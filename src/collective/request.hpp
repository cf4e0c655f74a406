// A collective call in neutral terms: no MPI handles, contiguous buffers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"

namespace stretto::collective {

enum class Kind : uint8_t { barrier, bcast, reduce, allreduce };
inline constexpr int kind_count = 4;

inline const char* name(Kind kind) {
  constexpr const char* names[kind_count] = {"barrier", "bcast", "reduce", "allreduce"};
  return names[int(kind)];
}

// A user's reduction: inout[i] = in[i] op inout[i] for `count` elements, in that operand order.
struct UserOp {
  void (*apply)(void* context, const void* in, void* inout, size_t count) = nullptr;
  void* context = nullptr;
};

// count, element, op and root are equal on all ranks; buffers and being in place are each rank's own.
struct Request {
  Kind kind = Kind::barrier;
  kernels::Op op = kernels::Op::sum;
  kernels::Type type = kernels::Type::opaque;
  size_t count = 0;
  size_t element = 1;  // bytes from one element to the next
  int root = 0;
  const void* input = nullptr;  // this rank's contribution; equal to `output` when in place
  void* output = nullptr;       // where the result goes; null on ranks that get none
  UserOp user;                  // for Op::user
  bool ordered = false;         // a user's op that does not commute
  const void* host = nullptr;   // the call in the host's terms, for stages that it does itself

  size_t bytes() const { return count * element; }
};

}  // namespace stretto::collective
