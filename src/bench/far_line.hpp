// The start line of ranks on several nodes: the MPI library's own barrier and broadcast, and clocks that are set against rank
// 0's.
#pragma once
#include "bench/nodes.hpp"

namespace stretto::bench {

class FarLine {
 public:
  void open(const Mpi& mpi, int rank, int ranks, int first_elsewhere);
  bool is_open() const { return mpi_ != nullptr; }

  // As those of StartLine.
  bool wait(double delay_ns, uint64_t* planned, uint64_t* start);
  void meet();
  void halt() { halts_ = true; }

  // Sets the clocks anew, as they drift; returns half a round trip of a message between rank 0 and the first rank elsewhere, in
  // ns.
  double set_clocks();
  // What this rank's clock is ahead of rank 0's, in ticks; may be negative.
  int64_t ahead() const { return ahead_; }

 private:
  struct Told {
    uint64_t start;  // by rank 0's clock
    uint64_t halts;
  };
  double compare_with(int other);
  void find_lead();

  const Mpi* mpi_ = nullptr;
  int rank_ = 0, ranks_ = 1, first_elsewhere_ = 1;
  int64_t ahead_ = 0;
  double lead_ns_ = 0;  // by which a start is told early
  bool halts_ = false;
};

}  // namespace stretto::bench
