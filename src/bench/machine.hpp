// What the machine itself takes, measured in the run: the floor under every collective.
#pragma once
#include "bench/start_line.hpp"

namespace stretto::bench {

class Machine {
 public:
  Machine(const Mpi& mpi, StartLine& line, int rank, int ranks) : mpi_(mpi), line_(line), rank_(rank), ranks_(ranks) {}

  // All collective over MPI_COMM_WORLD, the same answer on all ranks, in us. 0 for no bytes, -1 without memory.
  double copy_us(size_t bytes);     // each rank copies so much, all at once (STREAM copy)
  double add_us(size_t bytes);      // each rank adds two vectors of so much, all at once
  double message_us(size_t bytes);  // one message from rank 0 to rank 1 (half a round trip of the MPI library); 0 for one rank

 private:
  enum class Work : uint8_t { copy, add };
  double work_us(Work work, size_t bytes);
  double once_us(Work work, float* to, const float* a, const float* b, size_t count, int repeats);

  const Mpi& mpi_;
  StartLine& line_;
  int rank_, ranks_;
};

}  // namespace stretto::bench
