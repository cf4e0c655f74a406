// What a call does with this rank's buffers where algorithms cannot work in them as they are.
#pragma once
#include "shim/hooks/entry.hpp"
#include "shim/staging.hpp"

namespace stretto::shim {

// `in` or `out` may have no layout: this rank gives or gets nothing.
struct Job {
  Buffer in, out;
  UserReduction* user;
  MPI_Comm comm;
};

// Buffers with gaps or on a GPU: their bytes are brought into host memory, where the algorithm works in place.
bool run_staged(const Entry& entry, const Job& job, Request& request, Call& call);

// Of reduce_scatter, whose result is one of the blocks that request.gives lists: the lists are made anew for host memory.
bool run_staged_blocks(const Entry& entry, const Job& job, Request& request, collective::Piece* blocks, Call& call);

}  // namespace stretto::shim
