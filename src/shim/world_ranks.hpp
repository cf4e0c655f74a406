// The ranks of a communicator, as ranks of MPI_COMM_WORLD.
#pragma once
#include "shim/context.hpp"
#include "shim/mpi.hpp"

namespace stretto::shim {

// Calls `take(rank, its rank in MPI_COMM_WORLD)` for all ranks, needing no memory. False: MPI failed, or `take` said no.
template <class Take>
bool for_world_ranks(MPI_Comm comm, int size, Take take) {
  constexpr int block = 128;
  int ranks[block], world_ranks[block];
  MPI_Group group;
  if (mpi().Comm_group(comm, &group) != MPI_SUCCESS) return false;
  bool good = true;
  for (int begin = 0; good && begin < size; begin += block) {
    int n = size - begin < block ? size - begin : block;
    for (int i = 0; i < n; ++i) ranks[i] = begin + i;
    good = mpi().Group_translate_ranks(group, n, ranks, context().world_group, world_ranks) == MPI_SUCCESS;
    for (int i = 0; good && i < n; ++i) good = take(begin + i, world_ranks[i]);
  }
  mpi().Group_free(&group);
  return good;
}

}  // namespace stretto::shim
