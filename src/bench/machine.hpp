// What the machine itself takes, measured in the run: the floor under every collective.
#pragma once
#include "bench/start_line.hpp"

namespace stretto::bench {

class Machine {
 public:
  Machine(const Mpi& mpi, StartLine& line) : mpi_(mpi), line_(line) {}
  void open(int rank, int ranks, int cores) {
    rank_ = rank;
    ranks_ = ranks;
    turns_ = ranks > cores ? double(ranks) / cores : 1;
  }

  // All collective over MPI_COMM_WORLD, the same answer on all ranks, in us. 0 for no bytes, -1 without memory.
  double copy_us(size_t bytes);     // each rank copies so much, all at once (STREAM copy)
  double add_us(size_t bytes);      // each rank adds two vectors of so much, all at once
  double message_us(size_t bytes);  // one message from rank 0 to rank 1 (half a round trip of the MPI library); 0 for one rank

 private:
  enum class Work : uint8_t { copy, add };
  struct Known {
    Work work;
    size_t bytes;
    double us;
  };
  static constexpr int most_known = 256;
  double work_us(Work work, size_t bytes);
  double measure_us(Work work, size_t bytes);
  double once_us(Work work, float* to, const float* a, const float* b, size_t count, int repeats);

  const Mpi& mpi_;
  StartLine& line_;
  int rank_ = 0, ranks_ = 1;
  double turns_ = 1;  // ranks per core
  Known known_[most_known];
  int known_count_ = 0;
};

}  // namespace stretto::bench
