// Brings slices to their end that direct access could not finish.
#pragma once
#include "collective/patterns/merge.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {

// A stopped slice: who has arrived, what of it is combined, and where this rank's partial results are.
struct Stopped {
  const Epoch& epoch;
  Range range;
  int level;
  const bool* room;     // by rank
  const char* partial;  // the vector's byte 0
};

// Each rank stages what it has of the slice, its input or a partial result; each consumer combines that. The same on all ranks.
Status resume_staged(Team& team, const Request& request, Consumers consumers, const Stopped& stopped);

}  // namespace stretto::collective
