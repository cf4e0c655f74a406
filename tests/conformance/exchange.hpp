// The traffic that collectives consist of: every rank shows a vector in rounds, every other rank reads it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/world.hpp"

namespace stretto::conformance {

// The bytes of a rank's vector: random, different for every rank and seed.
std::vector<char> pattern(uint64_t seed, int rank, size_t bytes);

struct Traffic {
  size_t bytes = 0;
  size_t round_bytes = 4096;  // at most; a cell may be smaller
  uint64_t seed = 1;
  bool in_place = false;  // produce where place() says (direct: in the window's buffer) rather than put
  bool pieces = true;     // put and get rounds in pieces of random sizes
};

struct Tally {
  uint64_t gets = 0;
  uint64_t refused = 0;
};

// Exchanges one vector; rounds run ahead as far as the ring of cells allows. Every byte that a get delivers is compared.
// Returns the first thing that was wrong; a refused get is none, and is counted.
std::string exchange(Rank& me, const Traffic& traffic, Tally* tally);

}  // namespace stretto::conformance
