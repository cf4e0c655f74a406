// The MPI library under this preload: every PMPI function that Stretto wraps or uses, found by name when it is first
// called. `mpi().Comm_rank(comm, &rank)` calls PMPI_Comm_rank. Nothing here is linked to an MPI library.
#pragma once
#include <atomic>
#include <cstdint>

#include "shim/abi.hpp"

namespace stretto::shim {

// A general-purpose register or stack slot as it holds an int, a handle or a pointer. The wrappers pass their arguments
// on as words, so that a call is forwarded unchanged even to an MPI with other handle types.
using Word = uintptr_t;
using AnyFunction = void (*)();

// The address of PMPI function number `index`, found on the first call. Never null: a function that the loaded MPI lacks
// is replaced by one that raises MPI_ERR_UNSUPPORTED_OPERATION on MPI_COMM_SELF and returns it; where no MPI is loaded,
// all are replaced by one that returns MPI_ERR_OTHER.
extern std::atomic<AnyFunction> addresses[];
AnyFunction resolve(uint32_t index);
inline AnyFunction function_address(uint32_t index) {
  const AnyFunction known = addresses[index].load(std::memory_order_relaxed);
  return __builtin_expect(known != nullptr, 1) ? known : resolve(index);
}

// Whether the loaded MPI has it.
bool function_present(uint32_t index);

// One function as Stretto calls it.
template <class Signature, uint32_t index>
struct Function;

template <class Result, class... Arguments, uint32_t index>
struct Function<Result(Arguments...), index> {
  Result operator()(Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Arguments...)>(function_address(index))(arguments...);
  }
  bool present() const { return function_present(index); }
};

}  // namespace stretto::shim

#include "shim/functions.hpp"  // generated from functions.txt: struct Functions with one Function per name, mpi()
