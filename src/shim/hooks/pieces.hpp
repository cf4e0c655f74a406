// Lists that last as long as a call does, which a nonblocking one does beyond the calls that follow it.
#pragma once
#include <memory>
#include <new>

#include "shim/hooks/entry.hpp"

namespace stretto::shim {

// A T for each rank: of few on this stack, which may be a small one.
template <class T>
class CallList {
 public:
  T* of(int ranks) {  // null: no memory
    if (ranks <= most_few) return few_;
    many_.reset(new (std::nothrow) T[size_t(ranks)]);
    return many_.get();
  }

 private:
  static constexpr int most_few = 32;
  T few_[most_few];
  std::unique_ptr<T[]> many_;
};
using PieceList = CallList<collective::Piece>;

// For a rank that has no memory for its lists: the others do not know.
inline bool take_part_without_memory(const Entry& entry, const Request& request, MPI_Comm comm, Call& call) {
  if (!entry.prepare(request, comm, call)) return false;
  if (call.code == MPI_SUCCESS) entry.give_up(MPI_ERR_NO_MEM, comm, call);
  return true;
}

}  // namespace stretto::shim
