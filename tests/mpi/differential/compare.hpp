// One collective through MPI_X (whatever is loaded before the MPI library), compared on every rank with what PMPI_X makes of
// copies of the same input, or with what can be known without.
#pragma once
#include <string>

#include "buffer.hpp"
#include "user_operation.hpp"

namespace differential {

struct Limits {
  size_t largest;         // bytes of the biggest buffer
  bool derived = true;    // derived types too
  bool same_bits = true;  // of the same call again
  bool all = true;        // more collectives than Barrier, Bcast, Reduce and Allreduce
  bool mixed = true;      // also in Allgather(v) each rank has a datatype of its own
  long late_us = 0;       // how late ranks come at most
};

// What the ranks of one communicator share while a sequence runs. `agreed` draws alike on all of them, `own` does not.
struct Context {
  MPI_Comm comm;
  std::string comm_name;
  uint64_t seed;
  long step;
  Random agreed, own;
  Limits limits;

  Context(MPI_Comm communicator, std::string name, uint64_t sequence_seed, long step_number, Limits buffer_limits);
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  int rank_ = 0, size_ = 0;
};

// Each draws everything it needs from the context, performs the calls and reports what differs.
void compare_barrier(Context& context);
void compare_bcast(Context& context);
void compare_reduce(Context& context);
void compare_allreduce(Context& context);
void compare_blocks(Context& context);             // Gather, Scatter, Allgather, Alltoall, and v and w forms
void compare_partial_reduction(Context& context);  // Scan, Exscan, Reduce_scatter, Reduce_scatter_block

// One of them at random.
void compare_any(Context& context);

// The counts of comparisons made and failed in this process; a failure has been described on standard error.
long comparisons();
long failures();
void count_comparison();
void report_failure(const Context& context, const std::string& what);

}  // namespace differential
