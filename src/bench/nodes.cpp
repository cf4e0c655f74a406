#include "bench/nodes.hpp"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <new>

namespace stretto::bench {
namespace {

struct Boot {
  char id[64];
};

Boot boot_of_this_node() {
  Boot boot{};
  FILE* file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) return boot;
  if (fgets(boot.id, sizeof boot.id, file) == nullptr) boot = {};
  fclose(file);
  return boot;
}

}  // namespace

Nodes find_nodes(const Mpi& mpi, int rank, int ranks) {
  Nodes nodes;
  std::unique_ptr<Boot[]> boots(new (std::nothrow) Boot[size_t(ranks)]);
  nodes.node_of.reset(new (std::nothrow) int[size_t(ranks)]);
  if (sum_over_ranks(mpi, boots && nodes.node_of ? 0 : 1) != 0) return {};
  const Boot own = boot_of_this_node();
  mpi.library.Allgather(&own, sizeof own, mpi.byte, boots.get(), sizeof own, mpi.byte, mpi.world);
  nodes.count = 0;
  for (int r = 0; r < ranks; ++r) {
    int first = 0;
    while (strcmp(boots[size_t(first)].id, boots[size_t(r)].id) != 0) ++first;
    nodes.node_of[size_t(r)] = first == r ? nodes.count++ : nodes.node_of[size_t(first)];
    if (nodes.node_of[size_t(r)] != 0 && nodes.first_elsewhere < 0) nodes.first_elsewhere = r;
  }
  const int* node_of = nodes.node_of.get();
  nodes.own = node_of[rank];
  nodes.local = int(std::count(node_of, node_of + rank, nodes.own));
  for (int n = 0; n < nodes.count; ++n) nodes.most = std::max(nodes.most, int(std::count(node_of, node_of + ranks, n)));
  return nodes;
}

}  // namespace stretto::bench
