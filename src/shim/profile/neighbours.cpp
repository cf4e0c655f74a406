// Who the neighbours in a topology are, as far as bytes are concerned.
#include <stdlib.h>

#include <new>

#include "shim/profile/communicators.hpp"

namespace stretto::shim::profile {
namespace {

// In the order of neighbourhood collectives: for each dimension the one below and the one above.
void ask_cartesian(MPI_Comm comm, Neighbours* n) {
  int dimensions = 0;
  if (mpi().Cartdim_get(comm, &dimensions) != MPI_SUCCESS || dimensions <= 0) return;
  n->sources = n->destinations = 2 * dimensions;
  n->absent_sources = static_cast<bool*>(calloc(size_t(n->sources), 1));
  n->absent_destinations = static_cast<bool*>(calloc(size_t(n->sources), 1));
  if (!n->absent_sources || !n->absent_destinations) return;
  for (int d = 0; d < dimensions; ++d) {
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    mpi().Cart_shift(comm, d, 1, &below, &above);
    n->absent_sources[2 * d] = n->absent_destinations[2 * d] = below == MPI_PROC_NULL;
    n->absent_sources[2 * d + 1] = n->absent_destinations[2 * d + 1] = above == MPI_PROC_NULL;
  }
}

void ask(const Communicator& c, Neighbours* n) {
  int topology = MPI_UNDEFINED, weighted = 0;
  if (mpi().Topo_test(c.handle, &topology) != MPI_SUCCESS) return;
  if (topology == MPI_CART) return ask_cartesian(c.handle, n);
  if (topology == MPI_DIST_GRAPH) {
    mpi().Dist_graph_neighbors_count(c.handle, &n->sources, &n->destinations, &weighted);
  } else if (topology == MPI_GRAPH) {
    mpi().Graph_neighbors_count(c.handle, c.rank, &n->sources);
    n->destinations = n->sources;
  }
}

}  // namespace

const Neighbours* neighbours_of(Communicator* communicator) {
  static constexpr Neighbours nobody;
  const Neighbours* known = communicator->neighbours.load(std::memory_order_acquire);
  if (known) return known;
  auto* asked = new (std::nothrow) Neighbours;
  if (!asked) return &nobody;
  ask(*communicator, asked);
  if (communicator->neighbours.compare_exchange_strong(known, asked, std::memory_order_acq_rel)) return asked;
  free(asked->absent_sources);
  free(asked->absent_destinations);
  delete asked;
  return known;
}

}  // namespace stretto::shim::profile
