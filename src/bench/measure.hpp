// How one point (a collective at a size, under an arrival pattern) is measured: samples of all sides in turn, in an order that
// changes from round to round, each from the start line on; times are kept in memory and gathered when the point is done.
#pragma once
#include "bench/arrival.hpp"
#include "bench/collectives.hpp"
#include "bench/start_line.hpp"

namespace stretto::bench {

// One of the things compared: functions and the communicator they are called with.
struct Side {
  const char* name = "";
  const Calls* calls = nullptr;
  MPI_Comm comm{};
};
inline constexpr int most_sides = 24;

enum class Mode : uint8_t {
  single,  // a sample is one call: all inputs rewritten, start line, call
  batch,   // a sample is a run of calls back to back, inputs rewritten before each, the root moving on
  loop,    // the same, but the root stays, as in most programs: ranks that need not wait for others run ahead of them
};

struct Plan {
  double budget_ms = 200;  // time to aim at for a point, never thrice that once `least` samples a side are taken
  double settle_ms = 50;   // for at most 100 calls before that do not count: programs find out by trial how to do them
  unsigned least = 7;
  int root = 0;
  bool crowded = false;  // more ranks than cores
  const Side* sides = nullptr;
  int side_count = 0;
  const Pattern* pattern = nullptr;
  double spread_us = 0;  // the largest delay (of replayed calls: 0)
};

struct Times {
  double median, p10, p90;
};

// One sample as the ranks saw it, in us after the common start.
struct Seen {
  double planned, entry, exit;
};

struct SidePoint {
  Times us;
  unsigned samples;
  std::unique_ptr<double[]> exits;  // per rank: median of exit - last arrival
  std::unique_ptr<Seen[]> typical;  // per rank: the sample whose time is the median
};

// Meaningful on rank 0, but for `wrong` and `failed`, which are equal on all ranks.
struct Point {
  SidePoint side[most_sides];
  double waiting_us;  // last arrival - own arrival: mean over ranks, median over samples
  unsigned calls;     // in a sample
  size_t wrong;       // wrong elements found, over all ranks
  double hop_ns[2];   // what a cache line took from core to core, before the samples and after
  bool failed;        // no memory
};

// Collective over MPI_COMM_WORLD. A sample's time is max exit - max arrival over the ranks; a rank arrives when it enters the
// call, but where ranks share cores, or a node's start line may reach it late, when it was to enter it, since it is ready then
// and the core is the library's to give. Batch: (max exit - min entry) / calls, rewriting the inputs included.
Point measure(const Mpi& mpi, const Collective& collective, Data& data, Mode mode, const Plan& plan, StartLine& line);

}  // namespace stretto::bench
