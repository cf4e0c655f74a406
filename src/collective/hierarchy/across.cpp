#include "collective/hierarchy/across.hpp"

#include <string.h>

#include "collective/patterns/combine.hpp"

namespace stretto::collective {
namespace {

constexpr size_t sent_whole = 4096;  // bytes up to which one step is worth more than few bytes

bool whole_pays(const Cluster& cluster, size_t bytes) {
  return cluster.place.nodes == 2 || (bytes <= sent_whole && bytes <= cluster.block_most());
}

// The blocks of all nodes that stand in the room, combined into `out`.
void combine_room(Cluster& cluster, const Request& request, size_t n, char* out) {
  const void** inputs = cluster.inputs();
  for (int i = 0; i < cluster.place.nodes; ++i) inputs[i] = cluster.room() + size_t(i) * n * request.element;
  combine(request, inputs, cluster.place.nodes, out, n);
}

// A slice cut into one part per node.
class Parts {
 public:
  Parts(Cluster& cluster, const Request& request, char* vector, size_t n)
      : cluster_(cluster), request_(request), vector_(vector), own_(part(n, cluster.place.node)) {
    for (int i = 0; i < nodes(); ++i) {
      Range range = part(n, i);
      bytes_[i] = int(range.size() * request.element);
      offsets_[i] = int(range.begin * request.element);
    }
  }

  // Afterwards this node's part of the vector holds the combination of all nodes'.
  Status reduce_scatter() {
    size_t own_bytes = own_.size() * request_.element;
    int *received = cluster_.numbers(2), *places = cluster_.numbers(3);
    for (int i = 0; i < nodes(); ++i) {
      received[i] = i == node() ? 0 : int(own_bytes);
      places[i] = int(size_t(i) * own_bytes);
    }
    int kept = bytes_[node()];
    bytes_[node()] = 0;  // what stays here need not be sent
    Status status = cluster_.links->exchange({vector_, bytes_, offsets_}, {cluster_.room(), received, places});
    bytes_[node()] = kept;
    STRETTO_TRY(status);
    char* mine = vector_ + offsets_[node()];
    memcpy(cluster_.room() + places[node()], mine, own_bytes);
    combine_room(cluster_, request_, own_.size(), mine);
    return Status::good();
  }

  Links::Blocks blocks() const { return {vector_, bytes_, offsets_}; }

 private:
  int nodes() const { return cluster_.place.nodes; }
  int node() const { return cluster_.place.node; }
  Range part(size_t n, int i) const {
    size_t grain = cache_line % request_.element == 0 ? cache_line / request_.element : 1;
    return part_of({0, n}, i, nodes(), grain);
  }

  Cluster& cluster_;
  const Request& request_;
  char* vector_;
  int* bytes_ = cluster_.numbers(0);
  int* offsets_ = cluster_.numbers(1);
  const Range own_;
};

}  // namespace

size_t slice_most(const Cluster& cluster) {
  return cluster.place.nodes == 2 ? cluster.block_most() : Cluster::slice_bytes;
}

Status allreduce_across(Cluster& cluster, const Request& request, char* vector, size_t n) {
  size_t bytes = n * request.element;
  if (whole_pays(cluster, bytes)) {
    STRETTO_TRY(cluster.links->allgather(vector, cluster.room(), bytes));
    combine_room(cluster, request, n, vector);
    return Status::good();
  }
  Parts parts(cluster, request, vector, n);
  STRETTO_TRY(parts.reduce_scatter());
  return cluster.links->allgather_blocks(parts.blocks());
}

Status reduce_across(Cluster& cluster, const Request& request, char* vector, size_t n, int root) {
  size_t bytes = n * request.element;
  bool is_root = cluster.place.node == root;
  if (whole_pays(cluster, bytes)) {
    STRETTO_TRY(cluster.links->gather(vector, cluster.room(), bytes, root));
    if (is_root) combine_room(cluster, request, n, vector);
    return Status::good();
  }
  Parts parts(cluster, request, vector, n);
  STRETTO_TRY(parts.reduce_scatter());
  return cluster.links->gather_blocks(parts.blocks(), root);
}

}  // namespace stretto::collective
