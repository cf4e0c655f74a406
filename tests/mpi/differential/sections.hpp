// The parts of the test program. Every part is collective over MPI_COMM_WORLD and leaves nothing behind.
#pragma once
#include <cstddef>
#include <cstdint>

namespace differential {

struct Options {
  uint64_t seed = 1;
  long steps = 400;  // of the random sequence; the other parts scale with it
  size_t largest = 4 << 20;
  int live = 3000;  // communicators alive at once
  int threads = 3;
  bool derived = true;    // reduce derived types too
  bool same_bits = true;  // a call done again gives the same bits
  bool all = true;        // more collectives than Barrier, Bcast, Reduce and Allreduce
  bool mixed = true;      // also in Allgather(v) each rank has a datatype of its own
  long late_us = 0;       // ranks come so late to calls, at most
};

// Random calls on world and on communicators made by every constructor of MPI, remade every few dozen steps.
void random_sequence(const Options& options);
// Calls while sends, receives, nonblocking collectives and one-sided transfers are under way.
void pending_traffic(const Options& options);
// Thousands of duplicates alive at once, each used; freed in another order; then once more.
void many_communicators(const Options& options);
// Several threads, each with a communicator of its own.
void threaded_sequence(const Options& options);
// What Stretto leaves to MPI: self, single-rank and intercommunicators, wrong arguments.
void passed_through(const Options& options);

}  // namespace differential
