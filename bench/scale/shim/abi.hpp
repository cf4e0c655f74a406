// Stands for src/shim/abi.hpp where the rails are compiled for the simulator: its MPI is linked, so handles are those of its
// header.
#pragma once
#include <smpi/smpi.h>

namespace stretto::shim {

// Only MPI_BYTE is asked for.
inline MPI_Comm comm_null() {
  return MPI_COMM_NULL;
}

inline bool predefined(const char*, MPI_Datatype* handle) {
  *handle = MPI_BYTE;
  return true;
}

}  // namespace stretto::shim
