#include "collective/hierarchy/placement.hpp"

#include <algorithm>
#include <new>

namespace stretto::collective {

// Names are few where ranks are many, so each rank's is looked for among those seen, the newest first.
bool Placement::find(const int* node_names, int ranks, int own_rank) {
  node_of.reset(new (std::nothrow) int[size_t(ranks)]);
  local_of.reset(new (std::nothrow) int[size_t(ranks)]);
  std::unique_ptr<int[]> names(new (std::nothrow) int[size_t(ranks)]), sizes(new (std::nothrow) int[size_t(ranks)]());
  by_node.reset(new (std::nothrow) int[size_t(ranks)]);
  first.reset(new (std::nothrow) int[size_t(ranks) + 1]);
  if (!node_of || !local_of || !by_node || !first || !names || !sizes) return false;
  size = ranks;
  rank = own_rank;
  nodes = 0;
  in_order = true;
  for (int r = 0; r < ranks; ++r) {
    int n = nodes - 1;
    while (n >= 0 && names[n] != node_names[r]) --n;
    if (n < 0) names[n = nodes++] = node_names[r];
    in_order = in_order && n == nodes - 1;
    node_of[r] = n;
    local_of[r] = sizes[n]++;
  }
  // NOLINTBEGIN(clang-analyzer-core.uninitialized.Assign): the loop has set them
  node = node_of[rank];
  local = local_of[rank];
  local_size = sizes[node];
  rails = *std::min_element(&sizes[0], &sizes[nodes]);
  largest = *std::max_element(&sizes[0], &sizes[nodes]);
  // NOLINTEND(clang-analyzer-core.uninitialized.Assign)
  first[0] = 0;
  for (int n = 0; n < nodes; ++n) first[n + 1] = first[n] + sizes[n];
  for (int r = 0; r < ranks; ++r) by_node[first[node_of[r]] + local_of[r]] = r;
  return true;
}

}  // namespace stretto::collective
