// What bcast and reduce along a chain of nodes have in common: a vector travels slice by slice from node to node, each node passing
// one slice on while the next comes in and the one before is moved inside the node. So each byte leaves a node once, and all links
// are busy but while the chain fills: N nodes and S slices take the time of S + N - 2 slices on a link.
#pragma once
#include <algorithm>
#include <cmath>

#include "collective/hierarchy/cluster.hpp"

namespace stretto::collective {

// Bytes of a slice: few slices cost little by themselves, small ones fill the chain sooner; the sum is least at a root of both.
inline size_t chain_slice(size_t bytes, int nodes) {
  constexpr double worth = 16 << 10;  // bytes that a link carries in the time that a slice costs by itself
  constexpr size_t least = size_t(16) << 10, most = size_t(256) << 10;
  const double best = std::sqrt(double(bytes) * worth / double(std::max(nodes - 1, 1)));
  return std::clamp(size_t(best) / cache_line * cache_line, least, most);
}

// One rank's view of a chain: the nodes in their order, from `head` on and around. A slice is carried by one rank of each node.
class Chain {
 public:
  static constexpr uint32_t window = 4;  // slices that a rank has on their way to it, and from it
  static_assert(3 * window <= Links::message_slots);

  // sole: a rank of the head's node, which carries all slices there; on other nodes several ranks take turns.
  Chain(Cluster& cluster, int head, int sole)
      : links_(*cluster.links),
        place_(cluster.place),
        head_(head),
        sole_(sole),
        turns_(uint32_t(carriers(place_.node))) {}

  bool is_head() const { return place_.node == head_; }
  bool is_tail() const { return after() == head_; }
  int after() const { return (place_.node + 1) % place_.nodes; }
  int before() const { return (place_.node + place_.nodes - 1) % place_.nodes; }

  int carrier(int node, uint32_t i) const {
    return node == head_ ? sole_ : place_.rank_at(node, int(i % uint32_t(carriers(node))));
  }
  int local_carrier(uint32_t i) const { return place_.local_of[carrier(place_.node, i)]; }
  bool carries(uint32_t i) const { return carrier(place_.node, i) == place_.rank; }

  // A carrier has a window of places for its slices: which one slice i has, and which slice has it next.
  uint32_t at(uint32_t i) const { return i / turns_ % window; }
  uint32_t next(uint32_t i) const { return i + window * turns_; }
  uint32_t first_slices() const { return window * turns_; }

  // Slice i from another rank.
  Status receive(int from, uint32_t i, void* data, size_t bytes) {
    return links_.start_receive(from, data, bytes, Links::slots + int(window + at(i)));
  }
  Status received(uint32_t i) { return links_.finish(Links::slots + int(window + at(i))); }

  // The same of a slice that comes to a rank where the chain does not end; that rank has all slices.
  Status receive_result(int from, uint32_t i, void* data, size_t bytes) {
    return links_.start_receive(from, data, bytes, Links::slots + int(2 * window + i % window));
  }
  Status result_received(uint32_t i) { return links_.finish(Links::slots + int(2 * window + i % window)); }

  // Slice i to another rank, from memory that is not needed any more after reusable(i).
  Status send(int to, uint32_t i, const void* data, size_t bytes) {
    sends_[at(i)] = true;
    return links_.start_send(to, data, bytes, sending(at(i)));
  }
  Status reusable(uint32_t i) { return sent(at(i)); }
  Status all_sent() {
    for (uint32_t place = 0; place < window; ++place) STRETTO_TRY(sent(place));
    return Status::good();
  }

 private:
  static constexpr int most_carriers = 1;
  int carriers(int node) const { return node == head_ ? 1 : std::min(place_.ranks_on(node), most_carriers); }
  static int sending(uint32_t place) { return Links::slots + int(place); }
  Status sent(uint32_t place) {
    if (!sends_[place]) return Status::good();
    sends_[place] = false;
    return links_.finish(sending(place));
  }

  Links& links_;
  const Placement& place_;
  const int head_, sole_;
  const uint32_t turns_;  // ranks of this node that carry
  bool sends_[window] = {};
};

}  // namespace stretto::collective
