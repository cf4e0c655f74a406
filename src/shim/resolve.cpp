// Finding PMPI functions by name at their first call.
#include <stdio.h>

#include "base/log.hpp"
#include "shim/mpi.hpp"
#include "shim/process.hpp"

namespace stretto::shim {

std::atomic<AnyFunction> addresses[function_count];

namespace {

int no_mpi() {
  return MPI_ERR_OTHER;
}

bool mpi_is_running() {
  int initialized = 0;
  int finalized = 1;
  if (mpi().Initialized.present()) mpi().Initialized(&initialized);
  if (mpi().Finalized.present()) mpi().Finalized(&finalized);
  return initialized && !finalized;
}

// Stands in for every function that the loaded MPI lacks.
int not_supported() {
  const int code = MPI_ERR_UNSUPPORTED_OPERATION;
  if (library().flavor != own_flavor()) return MPI_ERR_OTHER;
  if (mpi().Comm_call_errhandler.present() && mpi_is_running()) mpi().Comm_call_errhandler(comm_self(), code);
  return code;
}

AnyFunction find(uint32_t index) {
  char symbol[64];
  snprintf(symbol, sizeof symbol, "P%s", function_names[index]);
  return reinterpret_cast<AnyFunction>(library().find(symbol));
}

}  // namespace

AnyFunction resolve(uint32_t index) {
  if (library().flavor == Flavor::none) {
    log_once(Level::error, "%s was called but no MPI library is loaded in this process", function_names[index]);
    return reinterpret_cast<AnyFunction>(no_mpi);  // not kept: MPI may be loaded later
  }
  AnyFunction found = find(index);
  if (!found) {
    log(Level::warning, "%s was called but the MPI library of this process does not have it", function_names[index]);
    found = reinterpret_cast<AnyFunction>(not_supported);
  }
  addresses[index].store(found, std::memory_order_relaxed);
  return found;
}

bool function_present(uint32_t index) {
  return find(index) != nullptr;
}

}  // namespace stretto::shim
