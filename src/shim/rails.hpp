// Rails: the communicators of MPI between the nodes of one communicator, as the engine's algorithms use them.
#pragma once
#include <memory>

#include "collective/hierarchy/cluster.hpp"
#include "shim/abi.hpp"

namespace stretto::shim {

// MPI libraries have few communicators to give (MPICH 2048), and the program needs them. So many may be rails.
inline constexpr int most_rails = 64;

// Takes one of the places for a rail; false: all are taken.
bool reserve_rail();
void return_rail();

// The stages on `comm`, which is freed with them, or by free_rails(). Its place has been reserved. Null: no memory.
std::unique_ptr<collective::Links> make_links(MPI_Comm comm);

}  // namespace stretto::shim
