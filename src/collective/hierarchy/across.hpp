// Between the leaders of the nodes: a slice that each has for its node is combined over all nodes, in node order, by Stretto's
// own arithmetic. MPI only moves bytes.
#pragma once
#include "collective/hierarchy/cluster.hpp"

namespace stretto::collective {

// Bytes of a slice for these functions: one per node fits the room where whole ones are gathered.
size_t slice_most(const Cluster& cluster);

// Whether MPI's arithmetic may be used for this: not for users' operations, whose elements may be packed, nor for 8 and 16 bit
// integers, which an Open MPI adds with saturation on some CPUs.
bool mpi_can(const Request& request);

// vector: this node's n elements; in the end those of all nodes combined, on every rank of the rail. Small slices, and those of
// two nodes, are sent whole to all (one step, (N-1) m bytes leave each node); others are cut into a part per node: reduce-scatter
// by one exchange, then allgather (2 (N-1)/N m bytes).
Status allreduce_across(Cluster& cluster, const Request& request, char* vector, size_t n);

// The same in three steps for slices on their way together, one in each slot of the links: to be called in this order for each
// slice, while other slices are at other steps. At most streamed_slice() bytes, or one element.
size_t streamed_slice(const Cluster& cluster);
Status start_across(Cluster& cluster, const Request& request, char* vector, size_t n, int slot);
Status turn_across(Cluster& cluster, const Request& request, char* vector, size_t n, int slot);
Status finish_across(Cluster& cluster, int slot);

// The same to one node, `root`: its leader has the result, the others' vectors are undefined. Gathered whole (m bytes leave each
// other node) or, large and among more than two, reduced by parts that are then gathered.
Status reduce_across(Cluster& cluster, const Request& request, char* vector, size_t n, int root);

}  // namespace stretto::collective
