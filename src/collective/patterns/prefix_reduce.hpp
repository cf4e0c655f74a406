// Prefix reductions: rank r gets the reduction of the contributions of ranks 0 to r (scan) or to r-1 (exscan).
//
// In rank order, by the same fixed association as other reductions of so many ranks. No chain: rank p-1 does not wait for p-1
// steps one after the other.
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

enum class Prefix : uint8_t { with_own, before_own };

// One exchange. bytes() <= slot_payload.
Status prefix_flat(Team& team, const Request& request, Prefix prefix);

// Contributions are staged range by range; every rank reads those before it while the next range is staged. Bytes that rank r
// loads and stores per byte of the vector: r loads, 1 store, besides 1 + 1 to stage.
Status prefix_staged(Team& team, const Request& request, Prefix prefix);

// The same where ranks are many: sums of blocks are made once, along the tree of the association, and rank r reads at most log2 p
// of them instead of all r contributions; those of others it waits for in as many steps. Users' operations: prefix_staged.
Status prefix_tree(Team& team, const Request& request, Prefix prefix);

// How many contributions rank r combines.
constexpr int inputs_of(int r, Prefix prefix) {
  return prefix == Prefix::with_own ? r + 1 : r;
}

// What the `p` contributions give, of which `out` may be one unless the op is a user's.
void combine_prefix(const Request& request, const void* const* inputs, int p, void* out, size_t n);

// Where all ranks can store into each other's results: the owner of a slice reads it from everybody once, block by block, and
// stores each rank's result in its place. All ranks load and store alike, s(p+1)/2 and s for a vector of s bytes, s of each from
// DRAM.
Status prefix_direct(Team& team, const Request& request, Prefix prefix);

}  // namespace stretto::collective
