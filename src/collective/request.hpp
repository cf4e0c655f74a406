// A collective call in neutral terms: no MPI handles, contiguous buffers.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"

namespace stretto::collective {

// Their numbers stand in records: new ones are added at the end.
enum class Kind : uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  gather,
  scatter,
  allgather,
  alltoall,
  gatherv,
  scatterv,
  allgatherv,
  alltoallv,
  alltoallw,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
};
inline constexpr int kind_count = int(Kind::exscan) + 1;

inline const char* name(Kind kind) {
  constexpr const char* names[kind_count] = {"barrier",    "bcast",     "reduce",    "allreduce",      "gather",
                                             "scatter",    "allgather", "alltoall",  "gatherv",        "scatterv",
                                             "allgatherv", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block",
                                             "scan",       "exscan"};
  return names[int(kind)];
}

// Of which no rank knows how large they are on the others.
inline bool sizes_vary(Kind kind) {
  return kind == Kind::gatherv || kind == Kind::scatterv || kind == Kind::alltoallv || kind == Kind::alltoallw;
}

// A run of bytes in this rank's memory. Null: nothing to be moved.
struct Piece {
  void* data;
  size_t bytes;
};

// A user's reduction: inout[i] = in[i] op inout[i] for `count` elements, in that operand order.
struct UserOp {
  void (*apply)(void* context, const void* in, void* inout, size_t count) = nullptr;
  void* context = nullptr;
};

// count, element, op and root are equal on all ranks; buffers and being in place are each rank's own.
//
// Collectives that only move bytes (patterns/shipment.hpp) have lists of pieces for buffers. Their element is 1, and their count
// the bytes of the largest contribution: of all blocks together where each rank is given another (scatter, alltoall), of one
// block where all are given the same; 0 where ranks do not know of one another's sizes (gatherv, scatterv, alltoallv, alltoallw).
struct Request {
  Kind kind = Kind::barrier;
  kernels::Op op = kernels::Op::sum;
  kernels::Type type = kernels::Type::opaque;
  size_t count = 0;
  size_t element = 1;  // bytes from one element to the next
  int root = 0;
  const void* input = nullptr;  // this rank's contribution; equal to `output` when in place
  void* output = nullptr;       // where the result goes; null on ranks that get none
  UserOp user;                  // for Op::user
  bool ordered = false;         // a user's op that does not commute
  const void* host = nullptr;   // the call in the host's terms, for stages that it does itself
  // What this rank gives: one piece where all get the same, else one for each rank, itself included; null: it gives nothing.
  // Of reduce_scatter, the blocks of the input.
  const Piece* gives = nullptr;
  // Where what each rank gives is to stand, one piece for each; null: it gets nothing. Pieces into which fewer bytes come become
  // as long as what comes, in collectives whose sizes vary; so does the only one of a Bcast that asks for it.
  Piece* gets = nullptr;

  size_t bytes() const { return count * element; }
  void came(int piece, size_t bytes) const {
    if (gets != nullptr) gets[piece].bytes = std::min(gets[piece].bytes, bytes);
  }
};

}  // namespace stretto::collective
