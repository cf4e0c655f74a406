// Stamps of all ranks -> times.
#pragma once
#include "bench/measure.hpp"

namespace stretto::bench {

struct Stamp {
  uint64_t start, planned, entry, exit;
  // To the clock of which this one's is ahead.
  void set_back(uint64_t ahead) { start -= ahead, planned -= ahead, entry -= ahead, exit -= ahead; }
};

// The stamps of all ranks: those of rank r begin at [r * total]. side_of[k] is the side of sample k.
struct Stamps {
  const Stamp* all;
  const char* side_of;
  unsigned total;
  int ranks;
  const Stamp& of(int rank, unsigned sample) const { return all[size_t(rank) * total + sample]; }
};

// How a sample is read.
struct Reading {
  bool planned;  // ranks arrive when they were to enter
  bool batch;    // from the first entry on, divided by `calls`
  unsigned calls;
};

// False without memory.
bool summarise(const Stamps& stamps, const Reading& reading, int side, SidePoint* point);
double typical_waiting_us(const Stamps& stamps, const Reading& reading);

// Sorts the values.
Times quantiles(double* values, unsigned count);

}  // namespace stretto::bench
