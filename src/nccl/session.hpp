// The process's trace of NCCL: opened at the first NCCL call, closed by nobody (it is mapped).
#pragma once
#include <atomic>
#include <cstdint>

#include "base/settings.hpp"
#include "nccl/communicators.hpp"
#include "trace/tracer.hpp"

namespace stretto::nccl {

// Whether this process is profiled at all; opens the trace at the first question.
bool profiled();

// Whether what happens now is to be recorded.
inline bool recording() {
  return profiled() && trace::recording != trace::Mode::off;
}

const Settings& settings();
int world_rank();  // by the launcher's variables; -1: unknown
int world_size();  // 0: unknown

// Iterations: by STRETTO_ITERATION_CALLS on the communicator made first, until the MPI side tells (stretto_nccl_control) that one
// begins after its first.
void count_iterations(const Communicator* communicator, uint32_t sequence);

void communicator_made();  // stamps the trace: the first one ends the initialisation
void now_and_then();       // keeps the clocks' calibration fresh; cheap

// How to say something once for the whole job rather than once for each rank.
bool speaks();

}  // namespace stretto::nccl
