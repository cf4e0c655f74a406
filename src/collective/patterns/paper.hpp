// The arrival-aware algorithms of Alizadeh, Sojoodi, Hassan Temucin and Afsahi, "Efficient process arrival pattern aware
// collective communication for deep learning" (2022), as a baseline for ours. Contributions are combined in the order of arrival,
// so results of floating-point sums differ from run to run (on all ranks alike): no default rule names them.
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Section 5.1. The first rank to arrive leads: it combines the others' contributions, which they copy into shared memory, as
// their ready flags come, then copies the result into shared memory and sets the completion flag. A user's operation, which
// may depend on the order of ranks, goes by gather_reduce.
Status paper_small_reduce(Team& team, const Request& request, Consumers consumers);

// Section 5.2. A chain in the order of arrival: each rank waits for the partial result of the one that came before it, reads it
// where it is, and adds its own; the last one's result is broadcast, or read by the root. Where a rank cannot read its
// predecessor's buffer, all of it is done again by slice_reduce, as are user's operations.
Status paper_large_reduce(Team& team, const Request& request, Consumers consumers);

}  // namespace stretto::collective
