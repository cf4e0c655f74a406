#include "shim/fortran.hpp"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>

#include "base/log.hpp"

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
  return nullptr;
}

void not_there() {
  log_once(Level::error, "a Fortran MPI function was called that the MPI library of this process does not have");
}

// Addresses of the variables that stand for MPI_IN_PLACE and MPI_BOTTOM. Open MPI defines each under four spellings,
// since compilers differ; the program uses one of them.
struct Sentinels {
  void* in_place[4];
  void* bottom[4];
};

Sentinels find_sentinels() {
  constexpr const char* in_place[] = {"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__",
                                      "MPI_FORTRAN_IN_PLACE"};
  constexpr const char* bottom[] = {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"};
  Sentinels found;
  for (int i = 0; i < 4; ++i) {
    found.in_place[i] = dlsym(RTLD_DEFAULT, in_place[i]);
    found.bottom[i] = dlsym(RTLD_DEFAULT, bottom[i]);
  }
  return found;
}

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
  static const Sentinels sentinels = find_sentinels();
  void* buffer = as<void*>(address);
  if (!buffer) return buffer;
  for (int i = 0; i < 4; ++i) {
    if (buffer == sentinels.in_place[i]) return MPI_IN_PLACE;
    if (buffer == sentinels.bottom[i]) return MPI_BOTTOM;
  }
  return buffer;
}

}  // namespace stretto::shim
