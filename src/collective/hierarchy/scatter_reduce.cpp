// Reduce_scatter and reduce_scatter_block over nodes, leaders: each node reduces what it has of all blocks, the block of each
// rank to the rail that carries it (rank l of the node for the ranks number l of all nodes); the rails exchange their partial
// results, so that each node has all those of its own blocks, and combine them node by node. The ranks beyond the rails of a node
// that has more of them are given theirs by the rails in turn. (N-1)/N of a vector leave each of N equal nodes.
#include <string.h>

#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"
#include "collective/patterns/combine.hpp"

namespace stretto::collective {
namespace {

class ClusterScatterReduce {
 public:
  ClusterScatterReduce(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        element_(request.element),
        deepest_(cluster.place.depth()),
        width_(std::max<size_t>(
            std::min(Cluster::room_bytes / scattered_blocks(cluster.place), Links::sent_unasked / size_t(deepest_)) / element_,
            1)) {
    for (int r = 0; r < place_.size; ++r) longest_ = std::max(longest_, request.gives[r].bytes / element_);
  }

  Status run() {
    for (size_t at = 0; at < longest_; at += width_) {
      range_ = {at * element_, std::min(at + width_, longest_) * element_};
      STRETTO_TRY(reduce_in_node());
      if (carries()) STRETTO_TRY(combine_nodes());
      if (place_.local_size > place_.rails) STRETTO_TRY(hand_on());
    }
    return Status::good();
  }

 private:
  // The room: the vector by rails, partial results of the blocks that this rank carries, the same of this node's blocks from
  // every node, and those combined.
  char* vector() { return cluster_.room(); }
  char* partial() { return vector() + size_t(place_.size) * width_ * element_; }
  char* from_nodes() { return partial() + size_t(place_.nodes * deepest_) * width_ * element_; }
  char* combined() { return from_nodes() + size_t(place_.nodes * deepest_) * width_ * element_; }

  bool carries() const { return place_.local < place_.rails; }
  Piece block(int rank) const { return cut(request_.gives[rank], range_); }
  Piece result() const { return cut({request_.output, request_.gives[place_.rank].bytes}, range_); }
  int carried(int n, int l, int k) const { return place_.carried(n, l, k); }
  size_t carried_bytes(int n) const {
    size_t bytes = 0;
    for (int k = 0; k < deepest_; ++k)
      if (int r = carried(n, place_.local, k); r >= 0) bytes += block(r).bytes;
    return bytes;
  }

  Status reduce_in_node() {
    PerRank<Piece> blocks(cluster_.lists);
    char* to = vector();
    for (int l = 0; l < place_.local_size; ++l) {
      blocks[l].data = to;
      for (int i = 0; i < place_.nodes * deepest_; ++i) {
        int r = carried(i / deepest_, l, i % deepest_);
        if (r < 0) continue;
        Piece piece = block(r);
        if (piece.bytes > 0) memcpy(to, piece.data, piece.bytes);
        to += piece.bytes;
      }
      blocks[l].bytes = size_t(to - static_cast<char*>(blocks[l].data));
    }
    Request phase = request_;
    phase.kind = Kind::reduce_scatter;
    phase.count = size_t(to - vector()) / element_;
    phase.input = vector();
    phase.output = partial();
    phase.gives = blocks;
    return cluster_.run_in_node(phase);
  }

  Status combine_nodes() {
    int *sent = cluster_.numbers(0, 0), *from = cluster_.numbers(0, 1), *received = cluster_.numbers(0, 2),
        *to = cluster_.numbers(0, 3), next = 0;
    const int own = int(carried_bytes(place_.node));
    for (int n = 0; n < place_.nodes; ++n) {
      const int bytes = int(carried_bytes(n));
      from[n] = next;
      sent[n] = n == place_.node ? 0 : bytes;
      received[n] = n == place_.node ? 0 : own;
      to[n] = n * own;
      next += bytes;
    }
    STRETTO_TRY(cluster_.links->exchange({partial(), sent, from}, {from_nodes(), received, to}));
    const void** inputs = cluster_.inputs();
    for (int n = 0; n < place_.nodes; ++n) inputs[n] = from_nodes() + to[n];
    inputs[place_.node] = partial() + from[place_.node];
    void* out = place_.local_size > place_.rails ? combined() : result().data;
    combine(request_, inputs, place_.nodes, out, size_t(own) / element_);
    return Status::good();
  }

  Status hand_on() {
    PerRank<Piece> gives(cluster_.lists), gets(cluster_.lists);
    for (Piece* pieces : {gives.of, gets.of}) std::fill_n(pieces, place_.local_size, Piece{});
    char* from = combined();
    for (int k = 0; k < deepest_; ++k) {
      int r = carried(place_.node, place_.local, k);
      if (r < 0) continue;
      gives[place_.local_of[r]] = {from, block(r).bytes};
      from += block(r).bytes;
    }
    gets[place_.local % place_.rails] = result();
    return cluster_.ship_in_node(Kind::alltoallv, 0, 0, gives, gets);
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const size_t element_;
  const int deepest_;
  const size_t width_;  // elements of each block in a slice
  size_t longest_ = 0;
  Range range_;  // of each block, in bytes
};

}  // namespace

Status scatter_reduce_leaders(Cluster& cluster, const Request& request) {
  return ClusterScatterReduce(cluster, request).run();
}

}  // namespace stretto::collective
