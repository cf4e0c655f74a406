// Barrier over nodes, leader: all of a node have come, then the first ranks of all nodes, then each lets its node go.
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {

Status barrier_leader(Cluster& cluster, const Request& request) {
  STRETTO_TRY(cluster.run_in_node(request));
  if (cluster.place.leads(0)) STRETTO_TRY(cluster.links->barrier());
  return cluster.run_in_node(request);
}

}  // namespace stretto::collective
