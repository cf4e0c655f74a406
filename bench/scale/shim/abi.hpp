// Stands for src/shim/abi.hpp where the rails are compiled for the simulator: its MPI is linked, so handles are those of its
// header.
#pragma once
#include <smpi/smpi.h>
#include <string.h>

namespace stretto::shim {

inline MPI_Comm comm_null() {
  return MPI_COMM_NULL;
}

inline MPI_Datatype byte_type() {
  return MPI_BYTE;
}

template <class Handle>
Handle named(const char*) {  // the null request, of all handles
  return MPI_REQUEST_NULL;
}

// What rails ask for.
inline bool predefined(const char* name, MPI_Datatype* handle) {
  *handle = MPI_UINT64_T;
  return strcmp(name, "MPI_UINT64_T") == 0;
}
inline bool predefined(const char*, MPI_Op* handle) {
  *handle = MPI_SUM;
  return true;
}

}  // namespace stretto::shim
