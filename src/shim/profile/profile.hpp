// The profile: what the wrappers tell the tracer (trace/tracer.hpp) while STRETTO_PROFILE is aggregate or full.
#pragma once
#include "base/settings.hpp"
#include "shim/persistent.hpp"
#include "shim/profile/call.hpp"
#include "trace/call_clock.hpp"

namespace stretto::shim::profile {

// Between MPI_Init and MPI_Finalize of a process that is profiled; also while MPI_Pcontrol(0) holds, since requests,
// communicators and the numbers of collectives are followed all the time.
extern constinit bool watching;

// True while a call of this thread is on its way: what the MPI library calls meanwhile is no call of the program.
extern constinit thread_local bool inside;

inline bool watches() {
  return __builtin_expect(watching, 0) && !inside;
}

// When the last call of this thread began that was timed.
extern constinit thread_local uint64_t last_reading;

// How calls of this function are timed: each one where it becomes an event.
inline trace::Clocking clocking(uint32_t index) {
  if (trace::recording == trace::Mode::full || concerns_persistent(index)) return trace::Clocking::every_call;
  if (is_local(index)) return trace::Clocking::never_waits;
  const Shape shape = descriptors[index].shape;
  const bool is_message = shape >= Shape::send && shape < Shape::start;
  return is_message || (shape >= Shape::wait && shape <= Shape::wait_some) ? trace::Clocking::may_wait
                                                                           : trace::Clocking::every_call;
}

// Around one call. `words` are those of C, one more than the function has parameters.
void enter_call(Call& call);
void leave_call(Call& call, int code);  // call.end has been taken

// After an error, before leave_call: does what MPI would have done had it been given the program's own arguments.
void wait_for_rest(const Call& call);

// Where the process stands.
void open_profile(const Settings& settings, const trace::Tables& tables);  // warns in one line where it cannot be written
void profile_initialised(uint64_t begin, uint32_t function);               // after MPI_Init, which began then
void profile_finalizing(uint64_t begin);
void profile_finalized(uint64_t begin, uint64_t end);
void profile_aborting();
void profile_in_fork_child();
void control(int level);  // MPI_Pcontrol

}  // namespace stretto::shim::profile
