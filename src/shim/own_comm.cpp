#include "shim/own_comm.hpp"

#include <utility>

#include "shim/mpi.hpp"

namespace stretto::shim {
namespace {

MPI_Comm own{};
bool made = false;

}  // namespace

void make_own_comm() {
  MPI_Group group;
  MPI_Errhandler errors_return;
  if (made || !predefined("MPI_ERRORS_RETURN", &errors_return) || mpi().Comm_group(comm_self(), &group) != MPI_SUCCESS) return;
  made = mpi().Comm_create(comm_self(), group, &own) == MPI_SUCCESS;
  mpi().Group_free(&group);
  if (made) mpi().Comm_set_errhandler(own, errors_return);
}

void free_own_comm() {
  if (std::exchange(made, false)) mpi().Comm_free(&own);
}

MPI_Comm own_comm() {
  return made ? own : comm_null();
}

// To nobody goes nothing, but MPI looks at what it is told to send. (Of no elements MPICH does not look at the type.)
bool takes_type(MPI_Datatype type) {
  const char element = 0;
  return !made || mpi().Send(&element, 1, type, MPI_PROC_NULL, 0, own) == MPI_SUCCESS;
}

}  // namespace stretto::shim
