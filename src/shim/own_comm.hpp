// A communicator of this process alone, without the program's attributes, on which MPI's errors are returned: for questions and
// messages to itself. Those of the program keep the error handlers they have. (To set one, and then set what was there before, is
// not the same: MPICH goes by MPI_COMM_WORLD's where none was ever set.)
#pragma once
#include "shim/abi.hpp"

namespace stretto::shim {

// After MPI_Init, and in MPI_Finalize. Not at the same time as others.
void make_own_comm();
void free_own_comm();

// comm_null(): there is none.
MPI_Comm own_comm();

// Whether MPI would communicate with elements of this type: it knows it, and it is committed. (True where MPI does not look.)
bool takes_type(MPI_Datatype type);

}  // namespace stretto::shim
