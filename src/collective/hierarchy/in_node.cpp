// The phase inside a node, and who stands for the node outside it.
#include <string.h>

#include <algorithm>

#include "base/clock.hpp"
#include "collective/hierarchy/cluster.hpp"
#include "platform/futex.hpp"

namespace stretto::collective {

namespace {

// What a rank gives itself, where it is alone.
void keep(const Request& request) {
  if (request.kind == Kind::reduce_scatter && request.output != nullptr)
    memcpy(request.output, request.gives->data, request.gives->bytes);
  if (request.gives == nullptr || request.gets == nullptr) return;
  Piece from = *request.gives, to = *request.gets;
  size_t bytes = std::min(from.bytes, to.bytes);
  request.came(0, bytes);
  if (bytes > 0 && from.data != to.data) memcpy(to.data, from.data, bytes);
}

}  // namespace

Status Cluster::bcast_in_node(int root, void* data, size_t bytes) {
  Request phase;
  phase.kind = Kind::bcast;
  phase.root = root;
  phase.count = bytes;
  phase.input = phase.output = data;
  return bytes == 0 ? Status::good() : run_in_node(phase);
}

Status Cluster::ship_in_node(Kind kind, int root, size_t count, const Piece* gives, Piece* gets) {
  Request phase;
  phase.kind = kind;
  phase.root = root;
  phase.count = count;
  phase.gives = gives;
  phase.gets = gets;
  return run_in_node(phase);
}

// A claim: the number of the message, and the local number of who carries it. Who is there claims what nobody has.
int Cluster::carrier_from(int root, uint64_t patience_ns) {
  constexpr int local_bits = 16;
  ++messages_;
  if (place.node == place.node_of[root]) return place.local_of[root];
  if (board_ == nullptr) return 0;
  std::atomic<uint64_t>& newest = board_->carriers[messages_ % Board::carriers_kept];
  uint64_t claim = newest.load(std::memory_order_acquire);
  const auto claimed = [&] { return claim >> local_bits == messages_; };
  if (place.local != usual_carrier_)
    for (const uint64_t begin = now_ns(); !claimed() && now_ns() - begin < patience_ns;) {
      platform::yield();
      claim = newest.load(std::memory_order_acquire);
    }
  const uint64_t own = messages_ << local_bits | uint64_t(place.local);
  while (!claimed())
    if (newest.compare_exchange_weak(claim, own, std::memory_order_acq_rel, std::memory_order_acquire)) claim = own;
  return usual_carrier_ = int(claim & ((1u << local_bits) - 1));
}

// Claims are overwritten once all ranks of the node have seen them.
Status Cluster::leave_message() {
  if (board_ == nullptr || messages_ % (Board::carriers_kept / 2) != 0) return Status::good();
  Request phase;
  phase.kind = Kind::barrier;
  return run_in_node(phase);
}

Status Cluster::run_in_node(const Request& request) {
  if (place.local_size > 1) return in_node_(context_, request);
  keep(request);
  const bool has_own = request.kind == Kind::reduce || request.kind == Kind::scan;
  if (has_own && request.output != request.input) memcpy(request.output, request.input, request.bytes());
  return Status::good();
}

}  // namespace stretto::collective
