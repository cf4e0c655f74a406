#include "collective/hierarchy/across.hpp"

#include <string.h>

#include "collective/patterns/combine.hpp"

namespace stretto::collective {
namespace {

constexpr size_t sent_whole = 4096;  // bytes up to which one step is worth more than few bytes

// Bytes of a slice of which each node's part is sent unasked.
size_t slice_unasked(const Cluster& cluster) {
  return size_t(cluster.place.nodes) * Links::sent_unasked;
}

bool whole_pays(const Cluster& cluster, size_t bytes) {
  return cluster.place.nodes == 2 || (bytes <= sent_whole && bytes <= cluster.block_most());
}

// The blocks of all nodes that stand in `room`, combined into `out`.
void combine_blocks(Cluster& cluster, const Request& request, const char* room, size_t n, char* out) {
  const void** inputs = cluster.inputs();
  for (int i = 0; i < cluster.place.nodes; ++i) inputs[i] = room + size_t(i) * n * request.element;
  combine(request, inputs, cluster.place.nodes, out, n);
}

// A slice cut into one part per node, for the node that combines it; with two nodes each combines the whole.
class Parts {
 public:
  Parts(Cluster& cluster, const Request& request, char* vector, size_t n, int slot, bool whole)
      : cluster_(cluster),
        request_(request),
        vector_(vector),
        bytes_(cluster.numbers(slot, 0)),
        offsets_(cluster.numbers(slot, 1)),
        sent_(cluster.numbers(slot, 2)),
        received_(cluster.numbers(slot, 3)),
        places_(cluster.numbers(slot, 4)),
        room_(cluster.room() + size_t(slot) * (Cluster::room_bytes / Links::slots)),
        own_(whole ? Range{0, n} : part(n, node())) {
    for (int i = 0; i < nodes(); ++i) {
      Range range = whole ? Range{0, n} : part(n, i);
      bytes_[i] = int(range.size() * request.element);
      offsets_[i] = int(range.begin * request.element);
      sent_[i] = i == node() ? 0 : bytes_[i];
      received_[i] = i == node() ? 0 : int(own_bytes());
      places_[i] = int(size_t(i) * own_bytes());
    }
  }

  Links::Blocks blocks() const { return {vector_, bytes_, offsets_}; }
  Links::Blocks to_send() const { return {vector_, sent_, offsets_}; }
  Links::Blocks to_receive() const { return {room_, received_, places_}; }

  // All have come: this node's part of the vector becomes the combination of all nodes'.
  void combine_own() {
    char* mine = vector_ + offsets_[node()];
    memcpy(room_ + places_[node()], mine, own_bytes());
    combine_blocks(cluster_, request_, room_, own_.size(), mine);
  }

 private:
  int nodes() const { return cluster_.place.nodes; }
  int node() const { return cluster_.place.node; }
  size_t own_bytes() const { return own_.size() * request_.element; }
  Range part(size_t n, int i) const {
    const size_t grain = line_grain(request_.element);
    return part_of({0, n}, i, nodes(), grain);
  }

  Cluster& cluster_;
  const Request& request_;
  char* vector_;
  int *bytes_, *offsets_, *sent_, *received_, *places_;
  char* room_;
  const Range own_;
};

}  // namespace

size_t slice_most(const Cluster& cluster) {
  return cluster.place.nodes == 2 ? cluster.block_most() : std::min(Cluster::slice_bytes, slice_unasked(cluster));
}

size_t streamed_slice(const Cluster& cluster) {
  return std::min(size_t(256) << 10, slice_unasked(cluster));
}

bool mpi_can(const Request& request) {
  using kernels::Type;
  bool narrow = request.type == Type::i8 || request.type == Type::u8 || request.type == Type::i16 || request.type == Type::u16;
  return request.op != kernels::Op::user && !narrow;
}

Status allreduce_across(Cluster& cluster, const Request& request, char* vector, size_t n) {
  if (whole_pays(cluster, n * request.element)) {
    STRETTO_TRY(cluster.links->allgather(vector, cluster.room(), n * request.element));
    combine_blocks(cluster, request, cluster.room(), n, vector);
    return Status::good();
  }
  Parts parts(cluster, request, vector, n, 0, false);
  STRETTO_TRY(cluster.links->exchange(parts.to_send(), parts.to_receive()));
  parts.combine_own();
  return cluster.links->allgather_blocks(parts.blocks());
}

Status start_across(Cluster& cluster, const Request& request, char* vector, size_t n, int slot) {
  Parts parts(cluster, request, vector, n, slot, cluster.place.nodes == 2);
  return cluster.links->start_exchange(parts.to_send(), parts.to_receive(), slot);
}

Status turn_across(Cluster& cluster, const Request& request, char* vector, size_t n, int slot) {
  STRETTO_TRY(cluster.links->finish(slot));
  bool whole = cluster.place.nodes == 2;
  Parts parts(cluster, request, vector, n, slot, whole);
  parts.combine_own();
  return whole ? Status::good() : cluster.links->start_allgather_blocks(parts.blocks(), slot);
}

Status finish_across(Cluster& cluster, int slot) {
  return cluster.place.nodes == 2 ? Status::good() : cluster.links->finish(slot);
}

Status reduce_across(Cluster& cluster, const Request& request, char* vector, size_t n, int root) {
  if (whole_pays(cluster, n * request.element)) {
    STRETTO_TRY(cluster.links->gather(vector, cluster.room(), n * request.element, root));
    if (cluster.place.node == root) combine_blocks(cluster, request, cluster.room(), n, vector);
    return Status::good();
  }
  Parts parts(cluster, request, vector, n, 0, false);
  STRETTO_TRY(cluster.links->exchange(parts.to_send(), parts.to_receive()));
  parts.combine_own();
  return cluster.links->gather_blocks(parts.blocks(), root);
}

}  // namespace stretto::collective
