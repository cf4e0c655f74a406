// Which communicator a window was made on, and a matched message came on.
#pragma once
#include "shim/profile/communicators.hpp"

namespace stretto::shim::profile {

struct Window {
  const Members* members = nullptr;  // null: unknown
  uint16_t index = trace::none16;    // of the communicator
};

void window_made(MPI_Win win, const Window& window);
void window_freed(uintptr_t handle);
Window window_of(MPI_Win win);

// Messages that MPI_Mprobe has matched and MPI_Mrecv will receive.
struct Matched {
  const Members* partners = nullptr;
  uint16_t index = trace::none16;
};
void message_matched(uintptr_t handle, const Matched& matched);
Matched message_taken(uintptr_t handle);

}  // namespace stretto::shim::profile
