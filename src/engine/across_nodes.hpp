// The part of a communicator that spans nodes: the communicator of this node's ranks, the rail to the other nodes, and the
// collectives composed of both.
#pragma once
#include <memory>

#include "collective/hierarchy/rows.hpp"
#include "engine/communicator.hpp"
#include "engine/varying_size.hpp"

namespace stretto::engine {

class AcrossNodes {
 public:
  AcrossNodes(Span& span, std::unique_ptr<Communicator> node)
      : node_(std::move(node)),
        links_(std::move(span.links)),
        cluster_(std::move(span.place), links_.get(), &AcrossNodes::run_in_node, this, &node_->team_->shared()) {}

  ~AcrossNodes() {
    if (failed_) cluster_.leave_memory_behind();
  }
  AcrossNodes(const AcrossNodes&) = delete;
  AcrossNodes& operator=(const AcrossNodes&) = delete;

  bool usable() const { return cluster_.usable(); }
  const collective::Placement& place() const { return cluster_.place; }
  collective::Cluster& cluster() { return cluster_; }

  // What the nodes agreed on: whether ranks outnumber CPUs on one of them, whether all say that their collectives are offloaded,
  // the largest element of a user's operation, and whether all threads may call MPI, which nonblocking collectives need.
  bool crowded = false;
  bool offload = false;
  size_t largest_element = 0;
  bool any_thread = false;

  // This node's cells, so that no phase inside a node ever declines. Says how large an element may be; 0: there is no memory.
  size_t prepare_node();
  int node_domains() const { return node_->team_->domains.count(); }

  VaryingSize& varying(collective::Kind kind) { return varying_[int(kind)]; }
  uint64_t bytes_for_rules(const collective::Request& request);
  Status add_up(uint64_t* number) { return links_->add_up(number); }

  void leave() { node_->leave(); }
  void abandon(uint32_t why) { node_->abandon(why); }
  // This rank goes no further in a collective: the others of its node, which may be waiting for it, neither.
  void tell_lost() { node_->tell_lost(node_->rank_); }
  void set_failed() { failed_ = true; }
  void settle() { failed_ = !links_->settle(); }
  // Each rail by its own ranks.
  void revoke() {
    node_->tell_revoked();
    links_->revoke();
  }
  bool is_revoked() const { return node_->team_->shared().revoked.load(std::memory_order_acquire); }

  // What happens between them is a nonblocking collective's, which waits by `suspension`; null: in its thread.
  void begin_started(collective::Suspension* suspension) {
    node_->team_->waiter.begin_beside(suspension);
    links_->begin_started(suspension);
  }
  void end_started() {
    node_->team_->waiter.end_beside();
    links_->end_started();
  }

 private:
  static Status run_in_node(void* self, const collective::Request& request);

  std::unique_ptr<Communicator> node_;
  std::unique_ptr<collective::Links> links_;
  collective::Cluster cluster_;
  VaryingSize varying_[collective::kind_count];
  bool failed_ = false;
};

}  // namespace stretto::engine
