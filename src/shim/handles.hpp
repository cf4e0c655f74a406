// What Stretto knows of predefined datatypes and operations, by handle.
#pragma once
#include <cstddef>

#include "kernels/kernels.hpp"
#include "shim/abi.hpp"

namespace stretto::shim {

struct TypeFacts {
  kernels::Type type = kernels::Type::opaque;  // opaque: bytes that are only moved (MPI_CHAR, MPI_PACKED, ...)
  size_t size = 0;                             // MPI_Type_size
  size_t extent = 0;                           // MPI_Type_get_extent; size < extent: a pair type with a gap at its end
};

// Fills the tables from the loaded MPI, and makes own_comm(); after MPI_Init, before the first look-up. Later calls do nothing.
// Thread-safe.
void prepare_handles();

// False: not a predefined type that the loaded MPI has (derived, null, absent), or prepare_handles has not run.
bool named_type(MPI_Datatype type, TypeFacts* facts);

// False: null, user-defined, MPI_REPLACE, MPI_NO_OP.
bool named_op(MPI_Op op, kernels::Op* which);

}  // namespace stretto::shim
