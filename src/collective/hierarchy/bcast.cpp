// Bcast over nodes. leader: the root sends the message to one rank of each other node by MPI's bcast, and these give it to their
// node. pipelined: the same slice by slice, several slices on their way while others are given out. A root whose local number
// not every node has hands the message to its node first, whose first rank then sends. Each byte enters a node once. Where some
// rank of a node has not come, its carrier takes (or sends) the whole message first: a late rank keeps no link idle,
// and what has come until then is given out as one.
#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

constexpr size_t one_call = size_t(1) << 30;       // bytes that MPI's ints can count
constexpr size_t piece_bytes = size_t(256) << 10;  // of the pipelined form

class ClusterBcast {
 public:
  ClusterBcast(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        data_(static_cast<char*>(place_.rank == request.root ? const_cast<void*>(request.input) : request.output)),
        rail_(place_.rail_of(request.root)),
        root_node_(place_.node_of[request.root]),
        handed_over_(place_.local_of[request.root] != rail_) {}

  Status run(size_t piece) {
    piece_ = piece;
    count_ = uint32_t((request_.bytes() + piece - 1) / piece);
    cluster_.come();
    for (uint32_t sent = 0, arrived = 0, given = 0; given < count_;)
      if (sent < count_ && sent < arrived + Links::slots)
        STRETTO_TRY(send(sent++));
      else if (arrived < count_ && (arrived <= given || !cluster_.node_is_here()))
        STRETTO_TRY(finish(arrived++));
      else
        STRETTO_TRY(give_out(arrived, &given));
    return Status::good();
  }

 private:
  bool here() const { return place_.node == root_node_; }
  size_t begin(uint32_t i) const { return std::min(i * piece_, request_.bytes()); }

  Status send(uint32_t i) {
    if (here() && handed_over_)
      STRETTO_TRY(cluster_.bcast_in_node(place_.local_of[request_.root], data_ + begin(i), begin(i + 1) - begin(i)));
    if (!place_.leads(rail_)) return Status::good();
    return cluster_.links->start_bcast(data_ + begin(i), begin(i + 1) - begin(i), root_node_, int(i % Links::slots));
  }

  Status finish(uint32_t i) { return place_.leads(rail_) ? cluster_.links->finish(int(i % Links::slots)) : Status::good(); }

  Status give_out(uint32_t arrived, uint32_t* given) {
    if (here() && handed_over_) return ++*given, Status::good();
    return give_pieces(cluster_, rail_, {data_, request_.bytes(), piece_}, arrived, given);
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  char* const data_;
  const int rail_, root_node_;
  const bool handed_over_;
  size_t piece_ = 1;
  uint32_t count_ = 0;
};

}  // namespace

Status bcast_leader(Cluster& cluster, const Request& request) {
  return ClusterBcast(cluster, request).run(one_call);
}

Status bcast_pipelined(Cluster& cluster, const Request& request) {
  return ClusterBcast(cluster, request).run(piece_bytes);
}

}  // namespace stretto::collective
