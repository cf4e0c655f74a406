// How the compiled kernels of one instruction set are found: set -> type -> op -> function. Private to this folder.
#pragma once
#include "kernels/kernels.hpp"

namespace stretto::kernels {

// out[i] = op over two, four or eight inputs as a balanced tree: op(op(0, 1), op(2, 3)). `out` may be any of the inputs.
using Function = void (*)(const void* const* inputs, void* out, size_t n);

struct Kernel {
  Function two = nullptr;
  Function four = nullptr;
  Function eight = nullptr;  // absent where the body is so long that eight inputs at once do not pay
};

// The kernels of one type by op; empty where the op is undefined or served by another type's row (see plan.hpp).
struct Row {
  Kernel of[op_count] = {};
  constexpr Kernel& operator[](Op op) { return of[int(op)]; }
  constexpr const Kernel& operator[](Op op) const { return of[int(op)]; }
};

// What is compiled once per instruction set, from the sources in isa/.
struct InstructionSet {
  const char* name;
  bool (*available)();  // does this CPU have it?
  const Row* rows[type_count];
  void (*stream)(void* to, const void* from, size_t bytes);
};

// Types without vector instructions, compiled once (extended.cpp).
extern const Row f80_row, f128_row, c80_row, c128_row, f80_i32_row;

}  // namespace stretto::kernels
