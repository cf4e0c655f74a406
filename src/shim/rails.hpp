// Rails: the communicators of MPI between the nodes of one communicator, as the engine's algorithms use them.
#pragma once
#include <memory>

#include "collective/hierarchy/cluster.hpp"
#include "shim/abi.hpp"

namespace stretto::shim {

// MPI libraries have few communicators to give (MPICH 2048), and the program needs them. So many over nodes may have links, each
// two communicators: the rail, and one of all ranks for messages between any two.
inline constexpr int most_rails = 64;

// Takes one of the places for links; false: all are taken.
bool reserve_rail();
void return_rail();

// The stages on `rail` (MPI_COMM_NULL: this rank has none) and the messages on `all`, which are freed with them, or by
// free_rails(). Their place has been reserved. Null: no memory.
std::unique_ptr<collective::Links> make_links(MPI_Comm rail, MPI_Comm all);

}  // namespace stretto::shim
