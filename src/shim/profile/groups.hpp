// Sets of world ranks in order: who the members of communicators and windows are. Each is kept once, for ever.
#pragma once
#include "shim/mpi.hpp"

namespace stretto::shim::profile {

struct Members {
  Members* next;  // of the same bucket
  uint64_t hash;
  uint32_t count;
  uint32_t nodes;    // that they are on; 0: unknown
  int32_t ranks[1];  // count of them; -1: not of MPI_COMM_WORLD

  int32_t rank(int32_t i) const { return i >= 0 && uint32_t(i) < count ? ranks[i] : -1; }
};

uint64_t mix(uint64_t hash, uint64_t value);

// After MPI_Init. `nodes`: the node of each world rank, kept by the caller; null: all are on one.
void prepare_members(const int32_t* nodes);

// Null: MPI did not tell, or there is no memory. The group is freed.
const Members* members_of(MPI_Group group);

// Nodes of both together; 0: unknown.
uint32_t nodes_of(const Members& one, const Members& other);

}  // namespace stretto::shim::profile
