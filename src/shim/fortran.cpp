#include "shim/fortran.hpp"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.hpp"
#include "shim/loaded.hpp"

namespace stretto::shim {

namespace {

constexpr const char* form_suffixes[] = {"_", "_f08_"};

std::atomic<AnyFunction> fortran_addresses[2][wrapped_count];

// pmpi_x_; in an MPI that names its profiling functions otherwise, the mpi_x_ behind this library's.
AnyFunction find(uint32_t index, Form form) {
  char symbol[80];
  snprintf(symbol, sizeof symbol, "p%s%s", function_names[index], form_suffixes[int(form)]);
  for (char* c = symbol; *c; ++c) *c = char(tolower(*c));
  for (const char* name : {symbol, symbol + 1}) {
    if (void* found = dlsym(RTLD_NEXT, name)) return reinterpret_cast<AnyFunction>(found);
  }
  for (const char* name : {symbol, symbol + 1}) {
    if (void* found = find_hidden(name)) return reinterpret_cast<AnyFunction>(found);
  }
  return nullptr;
}

// Nobody knows which argument, if any, is to hold the error.
void not_there() {
  log(Level::error, "a Fortran MPI function was called that no MPI library of this process has: ending it");
  abort();
}

// The variables that stand for MPI_IN_PLACE and MPI_BOTTOM. Open MPI defines each under four spellings, since compilers differ;
// the program uses one of them. Who comes to a Fortran function has loaded what MPI will know them by.
struct Sentinels {
  Variables in_place =
      variables_named({"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"});
  Variables bottom = variables_named({"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"});
};

}  // namespace

AnyFunction fortran_function(uint32_t index, Form form) {
  std::atomic<AnyFunction>& slot = fortran_addresses[int(form)][index];
  AnyFunction known = slot.load(std::memory_order_relaxed);
  if (known) return known;
  library();  // opens the record before the first count
  known = find(index, form);
  if (!known) return not_there;
  slot.store(known, std::memory_order_relaxed);
  return known;
}

void* fortran_buffer(Word address) {
  static const Sentinels& sentinels = *new Sentinels;  // in use by what runs at the exit, too
  void* buffer = as<void*>(address);
  if (contains(sentinels.in_place, buffer)) return MPI_IN_PLACE;
  return contains(sentinels.bottom, buffer) ? MPI_BOTTOM : buffer;
}

}  // namespace stretto::shim
