// Scan and Exscan over nodes whose ranks follow one another, leader: every node does its own; its last rank then has the node's
// total. Between the last ranks each learns the combination of all former nodes by distance doubling: in step k node i gives what
// it knows of the nodes (i - 2^k, i] to node i + 2^k. At last each rank puts the former nodes' before its own. All slice by
// slice. log2(N) m bytes leave a node at most, m where N = 2; the rank that a result is for combines it, in rank order.
#include <string.h>

#include <algorithm>

#include "collective/hierarchy/rows.hpp"
#include "collective/patterns/combine.hpp"

namespace stretto::collective {
namespace {

class ClusterPrefix {
 public:
  ClusterPrefix(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        own_counts_(request.kind == Kind::scan),
        slice_(std::max<size_t>(Cluster::slice_bytes / request.element, 1)) {}

  Status run() {
    for (size_t at = 0; at < request_.count; at += slice_) {
      range_ = {at, std::min(at + slice_, request_.count)};
      STRETTO_TRY(in_node());
      if (is_last()) STRETTO_TRY(between_nodes());
      if (place_.node > 0) STRETTO_TRY(put_former_before());
    }
    return Status::good();
  }

 private:
  // In the room of a node's last rank: what it knows of the newest nodes, and what another tells it.
  char* known() { return cluster_.room(); }
  char* told() { return cluster_.room() + Cluster::room_bytes / 2; }
  char* former() { return cluster_.vector(); }  // of all nodes before this one

  size_t elements() const { return range_.size(); }
  size_t bytes() const { return elements() * request_.element; }
  bool is_last() const { return place_.local + 1 == place_.local_size; }
  bool has_next(int distance) const { return place_.node + distance < place_.nodes; }
  int last_of(int node) const { return place_.rank_at(node, place_.ranks_on(node) - 1); }
  const char* input() const { return static_cast<const char*>(request_.input) + range_.begin * request_.element; }
  char* output() const {  // null on the first rank of an exscan
    return request_.output ? static_cast<char*>(request_.output) + range_.begin * request_.element : nullptr;
  }

  // In place, an exscan leaves nothing of what this rank has given.
  Status in_node() {
    const bool tells = is_last() && has_next(1);
    if (tells && !own_counts_) memcpy(known(), input(), bytes());
    Request phase = request_;
    phase.count = elements();
    phase.input = input();
    phase.output = output();
    STRETTO_TRY(cluster_.run_in_node(phase));
    if (tells && own_counts_) memcpy(known(), output(), bytes());
    if (tells && !own_counts_ && place_.local > 0) combine_before(request_, output(), known(), elements());
    return Status::good();
  }

  Status between_nodes() {
    for (int distance = 1; distance <= place_.node || has_next(distance); distance *= 2) {
      const bool hears = distance <= place_.node;
      char* const to = distance == 1 ? former() : told();
      if (hears) STRETTO_TRY(cluster_.links->receive(last_of(place_.node - distance), to, bytes(), nullptr));
      if (has_next(distance)) STRETTO_TRY(cluster_.links->send(last_of(place_.node + distance), known(), bytes()));
      STRETTO_TRY(cluster_.links->finish_messages());
      if (!hears) continue;
      if (has_next(2 * distance)) combine_before(request_, to, known(), elements());
      if (to != former()) combine_before(request_, to, former(), elements());
    }
    return Status::good();
  }

  Status put_former_before() {
    Request phase;
    phase.kind = Kind::bcast;
    phase.root = place_.local_size - 1;
    phase.count = bytes();
    phase.input = phase.output = former();
    STRETTO_TRY(cluster_.run_in_node(phase));
    if (own_counts_ || place_.local > 0)
      combine_before(request_, former(), output(), elements());
    else
      memcpy(output(), former(), bytes());
    return Status::good();
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const bool own_counts_;  // scan
  const size_t slice_;     // elements
  Range range_;            // of the vector, in elements
};

}  // namespace

Status scan_leader(Cluster& cluster, const Request& request) {
  return ClusterPrefix(cluster, request).run();
}

}  // namespace stretto::collective
