// On which nodes the ranks are.
#pragma once
#include <memory>

#include "bench/mpi.hpp"

namespace stretto::bench {

// As one rank sees them. Nodes are told apart by their system's boot, and numbered as they come up among the ranks.
struct Nodes {
  std::unique_ptr<int[]> node_of;  // by rank; null: no memory
  int count = 1;
  int own = 0;
  int local = 0;             // this rank among those of its node
  int most = 1;              // ranks on the node that has most of them
  int first_elsewhere = -1;  // the first rank that is not on rank 0's node
};

// Collective over MPI_COMM_WORLD.
Nodes find_nodes(const Mpi& mpi, int rank, int ranks);

}  // namespace stretto::bench
