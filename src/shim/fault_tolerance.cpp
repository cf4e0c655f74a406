#include "shim/fault_tolerance.hpp"

#include "shim/context.hpp"
#include "shim/hooks/entry.hpp"
#include "shim/persistent.hpp"
#include "shim/process.hpp"
#include "shim/wrap.hpp"

namespace stretto::shim {
namespace {

using Revoke = int (*)(MPI_Comm);
using IsRevoked = int (*)(MPI_Comm, int*);

// Null: this MPI has none.
Revoke revoke_of_mpi() {
  static const auto found = reinterpret_cast<Revoke>(library().find("PMPIX_Comm_revoke"));
  return found;
}

bool has_classes() {
  return int(MPIX_ERR_REVOKED) != int(MPI_SUCCESS) && revoke_of_mpi() != nullptr;
}

}  // namespace

int error_of_death(const char** name) {
  *name = has_classes() ? "MPIX_ERR_PROC_FAILED" : "MPI_ERR_OTHER";
  return has_classes() ? int(MPIX_ERR_PROC_FAILED) : int(MPI_ERR_OTHER);
}

int error_of_revocation() {
  return has_classes() ? int(MPIX_ERR_REVOKED) : int(MPI_ERR_OTHER);
}

bool is_revocation(int error_class) {
  return has_classes() && error_class == MPIX_ERR_REVOKED;
}

bool is_death(int error_class) {
  return has_classes() && (error_class == MPIX_ERR_PROC_FAILED || error_class == MPIX_ERR_PROC_FAILED_PENDING);
}

void revoke(MPI_Comm comm) {
  if (const Revoke function = revoke_of_mpi()) function(comm);
}

bool is_revoked(MPI_Comm comm) {
  static const auto ask = reinterpret_cast<IsRevoked>(library().find("PMPIX_Comm_is_revoked"));
  int flag = 0;
  return ask != nullptr && ask(comm, &flag) == MPI_SUCCESS && flag != 0;
}

void learn_of_revocation(MPI_Comm comm) {
  Communicator* const communicator = attached() ? known(comm) : nullptr;
  if (comm == comm_world()) context().world_is_revoked.store(true, std::memory_order_relaxed);
  revoke(comm);
  revoke_persistent(comm);
  if (communicator != nullptr) communicator->revoke();
}

}  // namespace stretto::shim

using namespace stretto::shim;

namespace {

int revoke_and_learn(MPI_Comm comm) {
  const Revoke function = revoke_of_mpi();
  if (function == nullptr) return MPI_ERR_OTHER;
  const int code = function(comm);
  if (code == MPI_SUCCESS && attached()) learn_of_revocation(comm);
  return code;
}

}  // namespace

extern "C" {

// Not in the table of functions: no standard has them, and not every MPI.
STRETTO_WRAPPER int MPIX_Comm_revoke(MPI_Comm comm) {
  return revoke_and_learn(comm);
}
STRETTO_WRAPPER int PMPIX_Comm_revoke(MPI_Comm comm) {
  return revoke_and_learn(comm);
}

}  // extern "C"
