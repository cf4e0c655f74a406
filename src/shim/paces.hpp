// At which pace each thread's calls are timed. In memory of its own: a library that is loaded late has little room for
// thread-local variables.
#pragma once
#include "shim/mpi.hpp"
#include "trace/pace.hpp"

namespace stretto::shim {

extern constinit thread_local trace::Pace* own_paces;  // of each function; null: not yet, or none

// Makes them. Where a thread has no memory for them, or is ending, one pace is that of all functions.
trace::Pace& make_pace(uint32_t index);

inline trace::Pace& pace_of(uint32_t index) {
  return __builtin_expect(own_paces != nullptr, 1) ? own_paces[index] : make_pace(index);
}

}  // namespace stretto::shim
