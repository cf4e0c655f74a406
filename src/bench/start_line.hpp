// The start line: a barrier that is not the measured library's, with one start time for all, so that what is compared starts
// alike and nothing of the library is in motion when it does. Of several nodes it is the library's after all (far_line.hpp).
#pragma once
#include <atomic>
#include <cstdint>

#include "bench/far_line.hpp"
#include "platform/cpus.hpp"

namespace stretto::bench {

struct alignas(128) StartLineShared {
  alignas(128) std::atomic<uint32_t> arrived;
  alignas(128) std::atomic<uint32_t> generation;
  std::atomic<uint64_t> start;   // the tick at which all go
  std::atomic<uint32_t> halted;  // the generation that is called off; naming it, a slow rank cannot take it for its own
  alignas(128) std::atomic<uint32_t> there;
  alignas(128) std::atomic<uint32_t> back;
};

class StartLine {
 public:
  // Collective over MPI_COMM_WORLD. `cpus`: those of any rank. `crowded`: ranks outnumber the cores, so those that wait sleep.
  // Null, or what is wrong.
  const char* open(const Mpi& mpi, int rank, int ranks, const Nodes& nodes, const platform::CpuSet& cpus, bool crowded);
  void close();

  // Waits for all ranks, and then until `delay_ns` after the common start. True: go, *planned is when this rank was to arrive and
  // *start the common start, in ticks. False: the race is called off, on all ranks alike.
  bool wait(double delay_ns, uint64_t* planned, uint64_t* start);
  bool wait() {
    uint64_t planned, start;
    return wait(0, &planned, &start);
  }

  // Waits for all ranks.
  void meet();

  // Calls off the next race: the one for which this rank comes to the line next. By one rank.
  void halt();

  // What a cache line takes from one core to the other, in ns: half a round trip between ranks 0 and 1, the best of many tries;
  // where ranks share cores, between two threads of rank 0, on the first and on the last CPU of all. It tells machines, and
  // moments of a virtual machine, apart. 0: one rank, one CPU, or a rank other than 0 where cores are shared. Over several nodes
  // what a message takes between two.
  double hop_ns();

  bool is_far() const { return far_.is_open(); }
  // What this rank's clock is ahead of rank 0's since hop_ns() was asked last; on one node they are the same.
  int64_t ahead() const { return far_.ahead(); }

 private:
  const char* share(const Mpi& mpi);
  uint32_t meet_near();  // returns the number of the meeting
  void await_generation_after(uint32_t generation) const;
  double hop_of_threads();

  StartLineShared* shared_ = nullptr;
  int rank_ = 0, ranks_ = 1;
  int first_cpu_ = -1, last_cpu_ = -1;  // that any rank may use
  bool crowded_ = false;
  FarLine far_;
};

}  // namespace stretto::bench
