// Communicators of Stretto's own for persistent collectives over nodes.
//
// Each has communicators of MPI's between the nodes, which are made and freed by all ranks together, while a rank frees its
// request when it likes. So a twin outlives its request, and the next persistent collective on that communicator takes it. All
// go in the collective call that frees the communicator if no rank uses one then; else MPI_Finalize frees what they have of MPI.
#pragma once
#include <atomic>

#include "engine/communicator.hpp"
#include "shim/abi.hpp"

namespace stretto::shim {

// Collective over `comm`, of which `home` is the state, a different one at each call until return_twin(). Null, on all ranks
// alike: there is none to be had. Its freed() says whether the program has freed `comm`.
engine::Communicator* take_twin(const engine::Communicator& home, MPI_Comm comm);
// This rank has done with it. Waits for nobody.
void return_twin(const engine::Communicator* twin);

// Twins that there are or were: before the first, freeing a communicator is MPI's business alone.
extern constinit std::atomic<uint32_t> twins_made;
inline bool any_twins() {
  return __builtin_expect(twins_made.load(std::memory_order_relaxed) != 0, 0);
}
// Before `comm` is freed. Collective where it has twins.
void free_twins(const engine::Communicator& home, MPI_Comm comm);

}  // namespace stretto::shim
