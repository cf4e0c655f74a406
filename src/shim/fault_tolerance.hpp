// What an MPI offers to programs that go on after a process has died (user-level failure mitigation, ULFM: MPIX_).
#pragma once
#include "shim/abi.hpp"

namespace stretto::shim {

// The error of a collective in which a rank has died: MPIX_ERR_PROC_FAILED, or where this MPI has none MPI_ERR_OTHER.
int error_of_death(const char** name);
// That of one on a communicator that is revoked.
int error_of_revocation();
bool is_revocation(int error_class);
bool is_death(int error_class);

// MPI's MPIX_Comm_revoke; nothing where it has none.
void revoke(MPI_Comm comm);
// Whether MPI has heard that `comm` is. Asks no other process.
bool is_revoked(MPI_Comm comm);
// This rank has heard that `comm` is revoked: from now on every call on it says so.
void learn_of_revocation(MPI_Comm comm);

}  // namespace stretto::shim
