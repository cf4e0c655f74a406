// The phase inside a node.
#include <string.h>

#include <algorithm>

#include "collective/hierarchy/cluster.hpp"

namespace stretto::collective {

namespace {

// What a rank gives itself, where it is alone.
void keep(const Request& request) {
  if (request.kind == Kind::reduce_scatter && request.output != nullptr)
    memcpy(request.output, request.gives->data, request.gives->bytes);
  if (request.gives == nullptr || request.gets == nullptr) return;
  Piece from = *request.gives, to = *request.gets;
  size_t bytes = std::min(from.bytes, to.bytes);
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

Status Cluster::ship_in_node(Kind kind, int root, size_t count, const Piece* gives, const Piece* gets) {
  Request phase;
  phase.kind = kind;
  phase.root = root;
  phase.count = count;
  phase.gives = gives;
  phase.gets = gets;
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
