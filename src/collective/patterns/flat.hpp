// Flat forms for vectors that fit into a slot: no leader, no tree.
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Each rank posts its vector; each consumer reads all of them and reduces in rank order. When everybody consumes, each early line
// has been read when the last one arrives: one line transfer remains. bytes() <= slot_payload.
Status flat_reduce(Team& team, const Request& request, Consumers consumers);

}  // namespace stretto::collective
