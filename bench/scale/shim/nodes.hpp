// Stands for src/shim/nodes.hpp, see abi.hpp beside it.
#pragma once
#include "shim/abi.hpp"

namespace stretto::shim {

struct HostOperands {
  MPI_Datatype type;
  MPI_Op op;
};

}  // namespace stretto::shim
