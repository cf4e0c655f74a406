// What bcast and reduce along a chain of nodes have in common: a vector travels slice by slice from node to node, each node
// passing one slice on while the next comes in and the one before is moved inside the node. So each byte leaves a node once, and
// all links are busy but while the chain fills: N nodes and S slices take the time of S + N - 2 slices on a link.
#pragma once
#include <algorithm>
#include <cmath>

#include "collective/hierarchy/cluster.hpp"

namespace stretto::collective {

// Bytes of a slice: few slices cost little by themselves, small ones fill the chain sooner; the sum is least at a root of both.
inline size_t chain_slice(size_t bytes, int nodes) {
  constexpr double worth = 16 << 10;  // bytes that a link carries in the time that a slice costs by itself
  constexpr size_t least = size_t(16) << 10;
  const size_t most = bytes <= Links::kept_unasked ? Links::sent_unasked : size_t(256) << 10;
  const double best = std::sqrt(double(bytes) * worth / double(std::max(nodes - 1, 1)));
  return std::clamp(size_t(best) / cache_line * cache_line, least, most);
}

// One rank's view of a chain: the nodes in their order, from that of rank `head` on and around. One rank of each node carries its
// slices: `head`, and the first of every other node. (That several take turns saves no time: each slice's phase in the node waits
// for its carrier all the same.)
class Chain {
 public:
  static constexpr uint32_t window = 4;  // slices on their way to a carrier, and from it
  static_assert(3 * window <= Links::message_slots);

  Chain(Cluster& cluster, int head) : links_(*cluster.links), place_(cluster.place), head_(head) {}

  bool at_head() const { return place_.node == place_.node_of[head_]; }
  bool at_tail() const { return node_after() == place_.node_of[head_]; }
  bool carries() const { return carrier(place_.node) == place_.rank; }
  int local_carrier() const { return place_.local_of[carrier(place_.node)]; }
  int after() const { return carrier(node_after()); }
  int before() const { return carrier((place_.node + place_.nodes - 1) % place_.nodes); }

  // Slice i from another rank; it has come.
  Status receive(int from, uint32_t i, void* data, size_t bytes) { return links_.start_receive(from, data, bytes, slot(i, 0)); }
  Status received(uint32_t i) { return links_.finish(slot(i, 0)); }

  // The same, beside those, of a result.
  Status receive_result(int from, uint32_t i, void* data, size_t bytes) {
    return links_.start_receive(from, data, bytes, slot(i, 1));
  }
  Status result_received(uint32_t i) { return links_.finish(slot(i, 1)); }

  // Slice i to another rank, from memory that is left alone until reusable(i + window), or all_sent().
  Status send(int to, uint32_t i, const void* data, size_t bytes) {
    sends_[i % window] = true;
    return links_.start_send(to, data, bytes, slot(i, 2));
  }
  Status reusable(uint32_t i) {
    if (!sends_[i % window]) return Status::good();
    sends_[i % window] = false;
    return links_.finish(slot(i, 2));
  }
  Status all_sent() {
    for (uint32_t i = 0; i < window; ++i) STRETTO_TRY(reusable(i));
    return Status::good();
  }

 private:
  int node_after() const { return (place_.node + 1) % place_.nodes; }
  int carrier(int node) const { return node == place_.node_of[head_] ? head_ : place_.rank_at(node, 0); }
  static int slot(uint32_t i, uint32_t kind) { return Links::slots + int(kind * window + i % window); }

  Links& links_;
  const Placement& place_;
  const int head_;
  bool sends_[window] = {};
};

}  // namespace stretto::collective
