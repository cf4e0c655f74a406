// Reductions of which each rank gets one block: owner-slice reductions where the owner's slice is its block, and nobody has to
// collect the others'.
//
// request.input is the whole vector, request.gives its blocks in rank order, equally long on all ranks; request.output takes the
// own block, and may lie where the input begins (in place).
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Whether the result lies where parts of the input do.
inline bool result_in_input(const Request& request) {
  const auto input = reinterpret_cast<uintptr_t>(request.input), output = reinterpret_cast<uintptr_t>(request.output);
  return output >= input && output < input + request.bytes();
}

// Everybody posts its vector and reduces its block from all. bytes() <= slot_payload.
Status scatter_reduce_flat(Team& team, const Request& request);

// Rounds carry the same slice of every block, so that all owners are busy in all of them. Bytes loaded and stored per byte of the
// vector and rank: 2 - 2/p to stage, 1 + 1/p to reduce.
Status scatter_reduce_staged(Team& team, const Request& request);

// The same, of which whoever is present does what can be done before the last rank comes (patterns/presence.hpp): each rank is at
// home in its block.
Status scatter_reduce_presence(Team& team, const Request& request);

// Owners read their blocks from all ranks where they are: 1 + 1/p. See patterns/direct.hpp for what happens when that is refused.
Status scatter_reduce_direct(Team& team, const Request& request);

}  // namespace stretto::collective
