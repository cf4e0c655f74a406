// The NCCL library of the process: found by name at the first call, whichever way the program loaded it.
#pragma once
#include <atomic>

#include "nccl/abi.hpp"
#include "nccl/functions.hpp"

namespace stretto::nccl {

using AnyFunction = void (*)();

// NCCL's own function behind the wrapper that `caller` (an address in the calling code) reached; where NCCL does not have it, one
// that returns ncclInvalidUsage. With several NCCL libraries loaded, the one that the caller is linked with.
AnyFunction real(Function function, const void* caller);

// An address in the NCCL that real() last chose for this thread; null: there was no choice, and it was the first library found.
const void* library_asked();

// Another of NCCL's functions, of the first NCCL library found; null where there is none.
AnyFunction find(const char* symbol);

// To be called before the function is looked up that makes a communicator: whether more than one NCCL is loaded now.
void look_for_libraries();

void describe_library(char* text, size_t bytes);  // "NCCL 2.27.3"

// Of a communicator of this NCCL (as library_asked() tells it).
int comm_size(Comm comm, const void* nccl);    // 0 where NCCL does not tell (yet)
int comm_rank(Comm comm, const void* nccl);    // -1
int comm_device(Comm comm, const void* nccl);  // CUDA device; -1

int current_device();  // that of this thread's CUDA context, where CUDA's driver library is loaded; else -1

}  // namespace stretto::nccl
