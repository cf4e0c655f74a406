// Reduce, chain: a node reduces a slice, adds to it what comes from the node after it in the chain (chain.hpp) and sends both on
// to the node before it; the root's node is the head. So the nodes' contributions are combined from the right, in the order of
// the nodes from the root's on, and around. An operation that does not commute has the first node as head, which sends the result
// to the root. m bytes leave each node but the root's; arithmetic by Stretto.
#include "collective/hierarchy/chain.hpp"
#include "collective/hierarchy/rows.hpp"
#include "collective/patterns/combine.hpp"

namespace stretto::collective {
namespace {

class ReduceAlongChain {
 public:
  ReduceAlongChain(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        ends_at_(request.ordered && place_.node_of[request.root] != 0 ? place_.rank_at(0, 0) : request.root),
        chain_(cluster, ends_at_),
        slice_(std::max<size_t>(chain_slice(request.bytes(), place_.nodes) / request.element, 1)),
        count_(uint32_t((request.count + slice_ - 1) / slice_)) {}

  Status run() {
    for (uint32_t i = 0; i < Chain::window; ++i) STRETTO_TRY(expect(i));
    for (uint32_t i = 0; i < count_; ++i) {
      STRETTO_TRY(in_node(i));
      if (chain_.carries()) STRETTO_TRY(add_and_pass_on(i));
      if (waits_for_result()) STRETTO_TRY(expect_result(i));
    }
    STRETTO_TRY(chain_.all_sent());
    return waits_for_result() ? results_received() : Status::good();
  }

 private:
  static constexpr size_t room_of_slice = Cluster::room_bytes / (2 * Chain::window);

  bool sends() const { return place_.rank != request_.root || place_.rank != ends_at_; }
  bool waits_for_result() const { return place_.rank == request_.root && ends_at_ != request_.root; }
  int addressee() const { return chain_.at_head() ? request_.root : chain_.before(); }

  size_t elements(uint32_t i) const { return std::min(slice_, request_.count - i * slice_); }
  size_t bytes(uint32_t i) const { return elements(i) * request_.element; }
  char* result(uint32_t i) const { return static_cast<char*>(request_.output) + i * slice_ * request_.element; }
  char* came(uint32_t i) { return cluster_.room() + i % Chain::window * room_of_slice; }
  char* sum(uint32_t i) { return sends() ? came(i) + Chain::window * room_of_slice : result(i); }

  Status expect(uint32_t i) {
    if (i >= count_ || chain_.at_tail() || !chain_.carries()) return Status::good();
    return chain_.receive(chain_.after(), i, came(i), bytes(i));
  }

  // The tail has nothing to add.
  Status in_node(uint32_t i) {
    const bool carries = chain_.carries();
    if (carries && chain_.at_tail()) STRETTO_TRY(chain_.reusable(i));
    Request phase = request_;
    phase.root = chain_.local_carrier();
    phase.count = elements(i);
    phase.input = static_cast<const char*>(request_.input) + i * slice_ * request_.element;
    phase.output = !carries ? nullptr : chain_.at_tail() ? sum(i) : cluster_.vector();
    return cluster_.run_in_node(phase);
  }

  Status add_and_pass_on(uint32_t i) {
    if (!chain_.at_tail()) {
      STRETTO_TRY(chain_.received(i));
      STRETTO_TRY(chain_.reusable(i));
      const void* both[] = {cluster_.vector(), came(i)};
      combine(request_, both, 2, sum(i), elements(i));
      STRETTO_TRY(expect(i + Chain::window));
    }
    return sends() ? chain_.send(addressee(), i, sum(i), bytes(i)) : Status::good();
  }

  // What the head sends back comes while later slices go there.
  Status expect_result(uint32_t i) {
    if (i >= Chain::window) STRETTO_TRY(chain_.result_received(i - Chain::window));
    return chain_.receive_result(ends_at_, i, result(i), bytes(i));
  }
  Status results_received() {
    for (uint32_t i = count_ - std::min(count_, Chain::window); i < count_; ++i) STRETTO_TRY(chain_.result_received(i));
    return Status::good();
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const int ends_at_;  // the rank that has the sum of all
  Chain chain_;
  const size_t slice_;  // elements
  const uint32_t count_;
};

}  // namespace

Status reduce_chain(Cluster& cluster, const Request& request) {
  return ReduceAlongChain(cluster, request).run();
}

}  // namespace stretto::collective
