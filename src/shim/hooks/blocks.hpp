// The buffers of a collective that moves blocks: what a rank gives, and where it gets what others give.
#pragma once
#include "shim/hooks/arrays.hpp"
#include "shim/hooks/entry.hpp"
#include "shim/staging.hpp"

namespace stretto::shim {

// One side of a call. Its describing functions return whether MPI's arguments make sense.
class Side {
 public:
  // One block, the same for all ranks (given), or from or to `only` that rank.
  bool one(const void* data, MPI_Count count, MPI_Datatype type);
  bool one_of(int only, const void* data, MPI_Count count, MPI_Datatype type);
  // A block of equal size for each rank, one after the other.
  bool equal(const void* data, MPI_Count count, MPI_Datatype type);
  // Blocks of any size at any distance, in elements; and in bytes, of any types, for which `layouts` gives room.
  bool varying(const void* data, Numbers counts, Numbers displacements, MPI_Datatype type, int ranks);
  bool mixed(const void* data, Numbers counts, Numbers displacements, Types types, int ranks, Layout* layouts);
  // The block of another side that stands at place r: what is given in place.
  void block_of(const Side& other, int r);

  bool empty() const { return shares_ == none; }
  bool committed() const { return committed_; }  // its datatypes; of what is given in place there are none
  int pieces(int ranks) const { return shares_ == none ? 0 : shares_ == shared ? 1 : ranks; }
  size_t block() const { return size_t(count_) * layout_.size; }  // of one() and equal()
  Buffer at(int r) const;
  // Lists the pieces; *bytes: of all together. True: all can be worked in where they are.
  bool list(int ranks, collective::Piece* pieces, uint64_t* bytes) const {
    return counts_.present() ? list_varying(ranks, pieces, bytes) : list_equal(ranks, pieces, bytes);
  }
  // Makes the datatypes of all blocks last as long as `types`. An MPI error code.
  int keep_types(int ranks, ResultTypes& types);

 private:
  bool describe_all(MPI_Datatype type);  // of all blocks
  bool counts_make_sense(int ranks) const;
  bool list_equal(int ranks, collective::Piece* pieces, uint64_t* bytes) const;
  bool list_varying(int ranks, collective::Piece* pieces, uint64_t* bytes) const;

  enum : uint8_t { none, shared, each } shares_ = none;
  int only_ = -1;
  bool stacked_ = false;  // blocks stand one after the other
  bool committed_ = true;
  const char* data_ = nullptr;
  MPI_Count count_ = 0;
  Numbers counts_, displacements_;
  Layout layout_;
  Layout* layouts_ = nullptr;
};

// Runs a request of which only the pieces are missing. Blocks that algorithms cannot work in travel through host memory of the
// call.
bool ship(const Entry& entry, const Side& gives, Side& gets, Request& request, MPI_Comm comm, Call& call);

}  // namespace stretto::shim
