#include "bench/mpi.hpp"

#include <dlfcn.h>
#include <stdio.h>

#include "shim/process.hpp"

namespace stretto::shim {

// The handles' names (shim/<abi>/predefined.cpp) are looked up in the library that was loaded here.
namespace {
Library loaded;
}

void* Library::find(const char* symbol) const {
  return handle ? dlsym(handle, symbol) : nullptr;
}

void* Library::find_data(const char* symbol) const {
  return find(symbol);
}

const Library& library() {
  return loaded;
}

}  // namespace stretto::shim

namespace stretto::bench {
namespace {

char problem[512];

const char* fail(const char* what, const char* name) {
  snprintf(problem, sizeof problem, "%s%s", what, name);
  return problem;
}

template <class Function>
bool look_up(void* handle, const char* prefix, const char* name, Function** function) {
  char symbol[64];
  snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
  *function = reinterpret_cast<Function*>(dlsym(handle, symbol));
  return *function != nullptr;
}

// The first name that is missing; null when all are there.
const char* fill(void* handle, const char* prefix, Calls* calls) {
#define STRETTO_BENCH_FIND(name, ...) \
  if (!look_up(handle, prefix, #name, &calls->name)) return #name;
  STRETTO_BENCH_CALLS(STRETTO_BENCH_FIND)
#undef STRETTO_BENCH_FIND
  return nullptr;
}

}  // namespace

const char* load_mpi(const char* file, Mpi* mpi) {
  void* handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) return fail("no MPI library: ", dlerror());
  shim::loaded.handle = handle;
  if (const char* missing = fill(handle, "PMPI_", &mpi->library)) return fail("the MPI library has no PMPI_", missing);
  // What is preloaded stands before the library in the global scope.
  if (const char* missing = fill(RTLD_DEFAULT, "MPI_", &mpi->program)) return fail("the MPI library has no MPI_", missing);
  return nullptr;
}

const char* find_handles(Mpi* mpi) {
  using shim::predefined;
  const bool all = predefined("MPI_COMM_WORLD", &mpi->world) && predefined("MPI_BYTE", &mpi->byte) &&
                   predefined("MPI_FLOAT", &mpi->float32) && predefined("MPI_DOUBLE", &mpi->float64) &&
                   predefined("MPI_UINT64_T", &mpi->uint64) && predefined("MPI_SUM", &mpi->sum) &&
                   predefined("MPI_MIN", &mpi->min) && predefined("MPI_MAX", &mpi->max);
  return all ? nullptr : "the MPI library is not of the ABI that this program is built for";
}

Preload find_preload() {
  Preload found{};
  auto find = [](const char* name, auto** function) {
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(RTLD_DEFAULT, name));
  };
  find("stretto_version", &found.version);
  find("stretto_accelerating", &found.accelerating);
  find("stretto_algorithms", &found.algorithms);
  find("stretto_default_rules", &found.default_rules);
  find("stretto_next_rules", &found.next_rules);
  find("stretto_tuning", &found.tuning);
  return found;
}

double max_over_ranks(const Mpi& mpi, double value) {
  double most = value;
  mpi.library.Allreduce(&value, &most, 1, mpi.float64, mpi.max, mpi.world);
  return most;
}

uint64_t sum_over_ranks(const Mpi& mpi, uint64_t value) {
  uint64_t sum = value;
  mpi.library.Allreduce(&value, &sum, 1, mpi.uint64, mpi.sum, mpi.world);
  return sum;
}

double from_rank_0(const Mpi& mpi, double value) {
  mpi.library.Bcast(&value, 1, mpi.float64, 0, mpi.world);
  return value;
}

}  // namespace stretto::bench
