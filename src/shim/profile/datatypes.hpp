// Sizes of datatypes, and the places of datatypes and operations in the trace's tables.
#pragma once
#include "shim/mpi.hpp"

namespace stretto::shim::profile {

struct TypeInfo {
  uint64_t size = 0;  // bytes of data in one element; 0 where MPI does not tell
  uint16_t index = 0xffff;
};

TypeInfo type_info(MPI_Datatype type);

uint8_t operation_index(MPI_Op op);

// After MPI_Init.
void prepare_datatypes();

}  // namespace stretto::shim::profile
