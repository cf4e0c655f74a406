// Lists of pieces that last as long as a call does, which a nonblocking one does beyond the calls that follow it.
#pragma once
#include <memory>
#include <new>

#include "shim/hooks/entry.hpp"

namespace stretto::shim {

// One piece for each rank: on this stack for as many as a node has.
class PieceList {
 public:
  collective::Piece* of(int ranks) {  // null: no memory
    if (ranks <= collective::max_team) return few_;
    many_.reset(new (std::nothrow) collective::Piece[size_t(ranks)]);
    return many_.get();
  }

 private:
  collective::Piece few_[collective::max_team];
  std::unique_ptr<collective::Piece[]> many_;
};

// For a rank that has no memory for its lists: the others do not know.
inline bool take_part_without_memory(const Entry& entry, const Request& request, MPI_Comm comm, Call& call) {
  if (!entry.prepare(request, comm, call)) return false;
  if (call.code == MPI_SUCCESS) entry.give_up(MPI_ERR_NO_MEM, comm, call);
  return true;
}

}  // namespace stretto::shim
