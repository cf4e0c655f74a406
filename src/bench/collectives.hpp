// The collectives that can be measured: one row each. Data are small whole numbers in floats, so that sums are exact in any
// order. Sizes are those of one block: the vector of a broadcast or reduction, what one rank gives another in an alltoall.
#pragma once
#include <cstddef>
#include <memory>

#include "bench/mpi.hpp"

namespace stretto::bench {

struct FreeBuffer {
  void operator()(float* buffer) const;
};
using Buffer = std::unique_ptr<float, FreeBuffer>;

// One rank's buffers, and its place.
struct Data {
  int rank = 0, ranks = 1;
  size_t count = 0;  // floats of a block
  Buffer send, receive;
  std::unique_ptr<int[]> counts, places;  // of the blocks, for the forms that take them
  std::unique_ptr<int[]> byte_places;     // the places in bytes, and the types: of alltoallw
  std::unique_ptr<MPI_Datatype[]> types;
};

enum class Part : uint8_t { none, one, all };  // blocks: none, one, one per rank

// What stands in block b of the result on a rank, of what the ranks have sent.
enum class Result : uint8_t { none, sum, root, each, sum_to_here, sum_below };

struct Collective {
  const char* name;
  bool rooted;
  bool only_root_receives;
  Part sends, receives;
  Result result;
  Part moved;  // what each rank must move at least, when all share the work
  void (*call)(const Mpi& mpi, const Calls& side, MPI_Comm comm, const Data& data, int root);
};

extern const Collective collectives[];
extern const int collective_count;

// Null where there is none of that name.
const Collective* collective_named(const char* name, size_t length);

inline size_t blocks(Part part, int ranks) {
  return part == Part::none ? 0 : part == Part::one ? 1 : size_t(ranks);
}

inline bool reduces(const Collective& c) {
  return c.result == Result::sum || c.result == Result::sum_to_here || c.result == Result::sum_below;
}

// Allocates and touches buffers for blocks of up to `bytes`, of elements of `type`. False without memory.
bool open_data(const Collective& c, size_t bytes, MPI_Datatype type, Data* data);

// Rewrites this rank's input of call number `iteration`, as a program does that computes between calls.
void fill(const Collective& c, const Data& data, int root, unsigned iteration);

// Overwrites where the result will stand with a value that no result has. Goes before fill().
void poison(const Collective& c, const Data& data);

// Number of wrong elements among those looked at: all, or the first, middle and last of each block.
size_t count_wrong(const Collective& c, const Data& data, int root, unsigned iteration, bool all);

}  // namespace stretto::bench
