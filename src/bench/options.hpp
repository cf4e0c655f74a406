// The command line of the benchmark program. `stretto bench` and `stretto tune` write it; --help tells people.
#pragma once
#include "bench/arrival.hpp"
#include "bench/collectives.hpp"

namespace stretto::bench {

inline constexpr int most_sizes = 96;
inline constexpr int most_spreads = 16;
inline constexpr int most_wanted = 32;

enum class ModeChoice : uint8_t { automatic, single, batch, loop };

struct Options {
  const char* mpi = nullptr;   // the MPI library
  const char* json = nullptr;  // a line per point goes there
  const Collective* wanted[most_wanted] = {};
  int wanted_count = 0;
  size_t sizes[most_sizes] = {};
  int size_count = 0;
  double spreads[most_spreads] = {};
  int spread_count = 0;
  ModeChoice mode = ModeChoice::automatic;
  size_t batch_limit = 16 << 10;
  double budget_ms = 200;
  unsigned least = 7;
  int root = 0;
  bool plain = false;          // MPI_X alone
  bool keep_places = false;    // ranks stay where the launcher put them
  bool candidates = false;     // every algorithm of the preloaded Stretto, and PMPI_X
  const char* also = nullptr;  // algorithms of the preloaded Stretto that are measured besides, separated by commas
  bool arrival = false;        // under `pattern`
  bool of_call = false;        // random spreads too are multiples of a balanced call's time
  double most_delay_ms = 0;    // no rank is later than that; 0: no limit
  double most_point_ms = 0;    // points of which the delays alone take longer are left out; 0: none
  Pattern pattern;
  const char* recorded = nullptr;
};

enum class Parsed : uint8_t { run, help, wrong };

// `speak`: this rank says what is wrong.
Parsed parse_options(int argc, char** argv, bool speak, Options* options);

}  // namespace stretto::bench
