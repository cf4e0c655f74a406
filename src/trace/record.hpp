// The record: what one rank counted, in a file that is mapped while the rank runs, so that a killed rank leaves it too.
//
// Layout (little endian, natural alignment; docs/record_format.md is its specification, tests/golden holds examples):
//   Header | function names | reason names | algorithm names | thread blocks | arrivals | turns
// Names are fixed-width, zero-padded, so that a reader needs no table of its own. A thread block belongs to one thread
// (the last one is shared by all threads beyond the number of blocks and updated atomically).
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::trace {

inline constexpr char record_magic[8] = {'S', 'T', 'R', 'E', 'T', 'T', 'O', 'R'};
inline constexpr uint32_t record_version = 4;
inline constexpr size_t name_bytes = 40;
inline constexpr uint32_t arrival_cells = 32;  // communicators whose arrivals are told apart
inline constexpr int kinds = 32;               // collectives that Stretto may take over, numbered by collective/request.hpp

enum class Stage : uint32_t { loaded = 0, initialised = 1, finalized = 2 };

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // sizeof(Header); the name tables follow
  uint32_t stage;         // Stage
  int32_t world_rank;     // -1 before MPI_Init
  int32_t world_size;     // 0 before MPI_Init
  int32_t pid;
  uint64_t start_ticks, start_ns;  // both clocks at load (ns: CLOCK_MONOTONIC) ...
  uint64_t last_ticks, last_ns;    // ... and at the newest calibration (init, finalize): ticks per ns = their quotient
  uint64_t init_ns, finalize_ns;   // end of MPI_Init, begin of MPI_Finalize; 0 when not reached
  uint32_t functions, reasons, algorithms, blocks;  // table lengths
  uint32_t blocks_used;
  uint32_t accelerating;  // 1: this rank took part in acceleration
  char mpi_library[128];  // first line of MPI_Get_library_version
  char host[64];
  char verdict[192];  // why acceleration is on or off, in words
};
static_assert(sizeof(Header) == 8 + 24 + 48 + 16 + 8 + 128 + 64 + 192);

// One per wrapped function.
struct FunctionCell {
  uint64_t calls;
  uint64_t ticks;  // spent inside, Stretto's own work included
  uint64_t bytes;  // sent or contributed by this rank where that is known (collectives), else 0
};

// One per collective kind.
struct KindCell {
  uint64_t accelerated_calls, accelerated_bytes, accelerated_ticks;
  uint64_t declined_calls, declined_bytes, declined_ticks;
};

// How the ranks of one communicator come to its collectives, as this rank has seen it (collective/arrival_watch.hpp).
struct ArrivalCell {
  uint64_t identity;      // equal on all its ranks of this node; one of the same ranks may get it once it is freed
  uint32_t rank, size;    // of this process in it, and its ranks
  uint64_t calls;         // collectives that were compared; 0: an unused cell
  uint64_t spread_ticks;  // last arrival less first, summed over them
  uint64_t most_ticks;    // and its maximum
  uint64_t behind_ticks;  // this rank's arrival less the first, summed
  uint64_t last;          // times that this rank was the last one
  uint64_t repeated;      // times that the last one was the same rank as in the collective compared before
};
static_assert(sizeof(ArrivalCell) == 64);

// Where Stretto and MPI take turns (STRETTO_TURNS): what one took, in units of 1024 ticks, and what it held.
struct Turn {
  uint32_t spent;   // from its first collective to that of the next turn
  uint32_t in_mpi;  // of the process meanwhile
  uint64_t bytes;   // that the process contributed to collectives meanwhile
};

inline constexpr uint32_t kept_turns = 512;

// Turns of one communicator. Of each four, the second and the third are those of MPI.
struct TurnsCell {
  uint32_t calls_each, size;  // collectives in a turn, ranks of the communicator
  uint64_t count;             // turns so far
  Turn newest[kept_turns];    // turn i stands at i % kept_turns
};
static_assert(sizeof(TurnsCell) == 16 + 16 * kept_turns);

// A thread block: FunctionCell[functions], KindCell[kinds], uint64_t declines[kinds][reasons], uint64_t ran[kinds][algorithms].

}  // namespace stretto::trace
