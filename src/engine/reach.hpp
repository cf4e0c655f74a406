// The direct transport of a communicator: everything by which this rank can reach its peers' memory, best first.
#pragma once
#include <memory>

#include "engine/job.hpp"
#include "transport/transport.hpp"

namespace stretto::engine {

// members[r]: the job's member that is rank r of `size`. `faults`: as in STRETTO_FAULT. Null: nothing is to be had here; what
// could not be had is said once, in the log. Mechanisms are probed: cross-memory attach by a real read from every peer.
std::unique_ptr<transport::Transport> reach_peers(Job& job, const int* members, int size, int rank, const char* faults);

}  // namespace stretto::engine
