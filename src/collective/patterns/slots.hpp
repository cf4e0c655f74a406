// Large vectors without staging cells: piece by piece through the slots of the board. Slow, and always to be had: for operations
// that cannot be left to MPI any more when it turns out that there are no cells.
#pragma once
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

bool fits_in_slots(const Request& request);  // whether it can be done so: a matter of kind and element
Status run_in_slots(Team& team, const Request& request);

}  // namespace stretto::collective
