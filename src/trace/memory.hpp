// The memory that a record lives in.
#pragma once
#include <limits.h>

#include <cstddef>

#include "base/status.hpp"

namespace stretto::trace {

// A new, empty file rank-<pid><tail> in `directory` (rank-<pid>-<n><tail> where that name is taken: other hosts write there
// too), open for reading and writing; -1 and errno where there is none. `path` is its name.
int create_rank_file(const char* directory, const char* tail, char (&path)[PATH_MAX]);

// A new file rank-<pid>.record in `directory` (rank-<pid>-<n>.record where that name is taken: other hosts write there
// too), allocated in full and mapped. Nothing is left behind on failure.
Status map_new_file(const char* directory, size_t bytes, void** address);

Status map_anonymous(size_t bytes, void** address);

// Puts private memory in the place of [address, address + bytes), with the first `kept` bytes as they were and zeros after.
Status make_private(void* address, size_t bytes, size_t kept);

}  // namespace stretto::trace
