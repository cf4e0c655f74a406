// Which rank is on which node, and what the clocks of the nodes have to do with one another.
//
// In the manner of HCA3 (Hunold and Carpen-Amarie: Hierarchical Clock Synchronization in MPI, 2018): ranks of a node share a
// clock, so one of each node, its leader, synchronises for all. In round k those of the first 2^k leaders that have the time
// already give it to the next 2^k: after log2(nodes) rounds all have it. Drift is the reader's business: MPI_Init and
// MPI_Finalize both synchronise, and in between the reader interpolates.
#pragma once
#include <cstdint>

namespace stretto::shim::profile {

// Collective over MPI_COMM_WORLD, unless the launcher says that all ranks are on one node: then nothing is exchanged. Returns the
// node of each world rank, numbered by their least ranks; null: all are on node 0.
const int32_t* find_nodes();

// Collective, where there are several nodes. `at`: 0 at MPI_Init, 1 at MPI_Finalize.
void synchronise_clocks(uint32_t at);

void end_clocks();

}  // namespace stretto::shim::profile
