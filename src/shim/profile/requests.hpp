// Requests under way: which call started them, so that the call that completes them can tell what was completed.
//
// Numbers only grow. A completing call notes the newest number before it calls MPI (newest_number); what it completed has at most
// that number, while a request that another thread started meanwhile, and to which MPI gave the same handle, has a larger one.
#pragma once
#include "shim/profile/communicators.hpp"

namespace stretto::shim::profile {

// A MPI_Comm_idup on its way.
struct LaterCommunicator {
  Origin origin;
  uint32_t number;
  const void* variable;  // where the handle will be
  bool fortran;
};

struct Tracked {
  uint64_t number = 0;              // 0: a persistent request that is not active
  uint64_t sent = 0, received = 0;  // as asked for
  const Members* partners = nullptr;
  const void* variable = nullptr;        // the program's
  Communicator* communicator = nullptr;  // held by persistent collectives
  LaterCommunicator* later = nullptr;
  int32_t peer = trace::no_peer, tag = 0;
  uint16_t function = 0, index = trace::none16, datatype = trace::none16, partitions = 0;
  uint8_t op = trace::none8, location = 0xff, flags = 0;
  bool persistent = false, receives = false, sends = false;
  bool silent = false;  // its status does not tell what was received
};

// Whether several threads may call MPI at once.
extern constinit bool several_threads;

uint64_t newest_number();
uint64_t draw_request_number();

void prepare_requests();

// A request with this handle was made. What is known of it is written where it is kept, until end_tracking(), which must follow
// soon: a copy of words that were just stored one by one would wait for the store buffer. What it points to is taken over. Null:
// there is no room.
Tracked* begin_tracking(uintptr_t handle);
void end_tracking(uintptr_t handle);

// What is known of it; number 0 in the result and false: nothing. `variable` tells requests apart to which MPI gives one handle.
bool look_up(uintptr_t handle, const void* variable, uint64_t newest, Tracked* found);

// The same of a request that was completed, which is forgotten, or if persistent becomes inactive.
bool complete(uintptr_t handle, const void* variable, uint64_t newest, Tracked* found);

// Forgets it, complete or not.
bool forget(uintptr_t handle, const void* variable, Tracked* found);

// Before MPI_Finalize: counts those whose completion was never seen.
void end_requests();

// A persistent request is started with this number.
bool set_number(uintptr_t handle, uint64_t number, Tracked* found);

}  // namespace stretto::shim::profile
