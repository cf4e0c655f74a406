// Presence-owned slices: reductions that do not care in which order ranks arrive.
//
// A vector is cut into slices. Whoever is present combines what has arrived of a slice, the largest complete subtrees of the
// fixed tree over the ranks (patterns/forest.hpp), and claims slices by atomics (patterns/claims.hpp). When the last rank
// arrives, one pass along its path to the root remains, and all ranks share its slices. If all arrive together the largest
// complete subtree is the whole tree: each slice is one pass by one rank, which is the owner-slice algorithm. Nothing is
// predicted, nothing switches.
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Over memory that all ranks can load and store. A partial result lies in the receive buffer of its subtree's first rank (which,
// in place, is in it already), the finished slice is stored into all receive buffers. Traffic after the last arrival, per
// byte of the vector, all ranks together: log2 p + 1 loads at most, p stores. When all arrive together: p loads, p stores. A rank
// that cannot reach a buffer stops the slices; what is not finished then goes through staging cells, from where it stands.
Status presence_direct_reduce(Team& team, const Request& request, Consumers consumers);

// Through staging cells, in rounds. Each rank is at home in a p-th of the round, which it does not stage: it alone finishes it,
// the others' part of it is combined by whoever is present. A rank may be three rounds ahead of the slowest. When all arrive
// together: the movement-avoiding owner-slice reduction (patterns/staged.hpp).
Status presence_staged_reduce(Team& team, const Request& request, Consumers consumers);

}  // namespace stretto::collective
