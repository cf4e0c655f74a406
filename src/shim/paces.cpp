#include "shim/paces.hpp"

#include <stdlib.h>

namespace stretto::shim {

constinit thread_local trace::Pace* own_paces = nullptr;

namespace {

thread_local constinit trace::Pace shared_pace;

// Ends with its thread, in which other destructors may still call MPI.
struct Keeper {
  bool ended = false;
  Keeper() = default;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    free(own_paces);
    own_paces = nullptr;
    ended = true;
  }
};
thread_local Keeper keeper;

}  // namespace

__attribute__((noinline)) trace::Pace& make_pace(uint32_t index) {
  if (!keeper.ended) own_paces = static_cast<trace::Pace*>(calloc(wrapped_count, sizeof(trace::Pace)));
  return own_paces ? own_paces[index] : shared_pace;
}

}  // namespace stretto::shim
