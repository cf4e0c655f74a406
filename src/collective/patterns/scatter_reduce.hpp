// Reductions of which each rank gets one block: owner-slice reductions where the owner's slice is its block, and nobody has to
// collect the others'.
//
// request.input is the whole vector, request.gives its blocks in rank order, equally long on all ranks; request.output takes the
// own block, and may lie where the input begins (in place).
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Everybody posts its vector and reduces its block from all. bytes() <= slot_payload.
Status scatter_reduce_flat(Team& team, const Request& request);

// Rounds carry the same slice of every block, so that all owners are busy in all of them. Bytes loaded and stored per byte of the
// vector and rank: 2 - 2/p to stage, 1 + 1/p to reduce.
Status scatter_reduce_staged(Team& team, const Request& request);

// Owners read their blocks from all ranks where they are: 1 + 1/p. See patterns/direct.hpp for what happens when that is refused.
Status scatter_reduce_direct(Team& team, const Request& request);

}  // namespace stretto::collective
