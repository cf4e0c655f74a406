// The instruction set in use.
#pragma once
#include "kernels/table.hpp"

namespace stretto::kernels {

// The best one that the CPU has, unless select_isa() chose another. Safe at any time, static initialisation included.
const InstructionSet& current();

}  // namespace stretto::kernels
