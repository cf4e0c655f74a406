// Which rank of a communicator is on which node.
#pragma once
#include <memory>

namespace stretto::collective {

// Nodes are numbered by their first rank, the ranks of a node (their local numbers) in the order of the communicator.
struct Placement {
  int size = 1, rank = 0;
  int nodes = 1, node = 0;                   // node: of this rank
  int local = 0, local_size = 1;             // on its node
  int rails = 1;                             // ranks of the smallest node
  int largest = 1;                           // ranks of the largest
  bool in_order = true;                      // every node's ranks follow one another: node by node is rank by rank
  std::unique_ptr<int[]> node_of, local_of;  // by rank
  std::unique_ptr<int[]> by_node;            // the ranks of node 0 in their order, those of node 1, ...
  std::unique_ptr<int[]> first;              // where each node's begin there; one more than nodes

  Placement() = default;
  Placement(Placement&&) = default;

  // From what identifies each rank's node. False: no memory.
  bool find(const int* node_names, int ranks, int own_rank);

  int rank_at(int n, int l) const { return by_node[first[n] + l]; }
  int ranks_on(int n) const { return first[n + 1] - first[n]; }
  // Where rails carry blocks, rail l does for the ranks number l, l + rails, ... of each node: so many at most, and number k of
  // them on node n; -1: there is none.
  int depth() const { return (largest + rails - 1) / rails; }
  int carried(int n, int l, int k) const {
    const int at = l + k * rails;
    return l < rails && at < ranks_on(n) ? rank_at(n, at) : -1;
  }
  bool leads(int rail) const { return local == rail; }
  // The rail on which a root sends and receives by itself; where it has none, that of the first ranks.
  int rail_of(int root) const { return local_of[root] < rails ? local_of[root] : 0; }
};

}  // namespace stretto::collective
