// Reductions in rank order where the ranks of a node do not follow one another, ordered: nothing may be combined in a node
// before the ranks between are there, so every rank combines a part of the vector. It gets all ranks' contributions to its part,
// by messages, and combines them in rank order. What it has then is given to all (allreduce) or to the root (reduce), each rank
// is given its prefix (scan, exscan), or the part is the result (reduce_scatter). Slice by slice. With P ranks, p of them on a
// node, p (P-p)/P m bytes leave the node, then (N-1)/N m, p/P m, p (P-p)/P m or nothing.
#include <algorithm>

#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"
#include "collective/patterns/combine.hpp"

namespace stretto::collective {
namespace {

class InRankOrder {
 public:
  InRankOrder(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        prefixes_(request.kind == Kind::scan || request.kind == Kind::exscan),
        given_(cluster.lists),
        result_(cluster.lists),
        gives_(cluster.lists),
        gets_(cluster.lists) {}

  Status run() {
    cut_into_parts();
    const size_t most = std::min(Cluster::room_bytes / size_t(place_.size), Cluster::slice_bytes) / request_.element;
    const size_t width = std::max<size_t>(most, 1) * request_.element;
    for (size_t at = 0; at < longest_; at += width) {
      range_ = {at, std::min(at + width, longest_)};
      STRETTO_TRY(collect());
      if (prefixes_) make_prefixes();
      STRETTO_TRY(prefixes_ ? hand_back() : give_out());
    }
    return Status::good();
  }

 private:
  bool scatters() const { return request_.kind == Kind::reduce_scatter || request_.kind == Kind::reduce_scatter_block; }

  // Part r is the one that rank r combines.
  void cut_into_parts() {
    const size_t share = (request_.count + size_t(place_.size) - 1) / size_t(place_.size);
    for (int r = 0; r < place_.size; ++r) {
      const Range part = {std::min(share * size_t(r), request_.count), std::min(share * size_t(r + 1), request_.count)};
      given_[r] = scatters() ? request_.gives[r] : piece(request_.input, part);
      result_[r] = scatters() ? Piece{} : piece(request_.output, part);
      longest_ = std::max(longest_, given_[r].bytes);
    }
  }
  Piece piece(const void* vector, const Range& part) const {
    if (vector == nullptr) return {};
    return {static_cast<char*>(const_cast<void*>(vector)) + part.begin * request_.element, part.size() * request_.element};
  }

  size_t own_bytes() const { return cut(given_[place_.rank], range_).bytes; }
  size_t own_elements() const { return own_bytes() / request_.element; }
  char* contribution(int rank) { return cluster_.room() + size_t(rank) * own_bytes(); }

  Status collect() {
    for (int r = 0; r < place_.size; ++r) {
      gives_[r] = cut(given_[r], range_);
      gets_[r] = {contribution(r), own_bytes()};
    }
    return exchange_messages(cluster_, gives_, gets_);
  }

  Status give_out() {
    PerRank<const void*> inputs(cluster_.lists);
    for (int r = 0; r < place_.size; ++r) inputs[r] = contribution(r);
    char* const out = scatters() ? static_cast<char*>(request_.output) + range_.begin : cluster_.vector();
    if (own_elements() > 0) combine(request_, inputs, place_.size, out, own_elements());
    if (scatters()) return Status::good();
    const Piece own = {out, own_bytes()};
    for (int r = 0; r < place_.size; ++r) gets_[r] = cut(result_[r], range_);
    Request phase;
    phase.kind = request_.kind == Kind::allreduce ? Kind::allgatherv : Kind::gatherv;
    phase.root = request_.root;
    phase.count = request_.kind == Kind::allreduce ? range_.size() : 0;
    phase.gives = &own;
    phase.gets = request_.output != nullptr ? gets_.of : nullptr;
    return phase.kind == Kind::allgatherv ? allgather_leader(cluster_, phase) : gather_leader(cluster_, phase);
  }

  // Of what contributions have become, an exscan gives each rank its predecessor's.
  void make_prefixes() {
    for (int r = 1; r < place_.size; ++r) combine_before(request_, contribution(r - 1), contribution(r), own_elements());
  }
  Status hand_back() {
    const int before = request_.kind == Kind::exscan;
    for (int r = 0; r < place_.size; ++r) {
      const bool given = r >= before;
      gives_[r] = given ? Piece{contribution(r - before), own_bytes()} : Piece{};
      gets_[r] = place_.rank >= before ? cut(result_[r], range_) : Piece{};
    }
    return exchange_messages(cluster_, gives_, gets_);
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const bool prefixes_;
  PerRank<Piece> given_, result_;  // parts, by who combines them
  PerRank<Piece> gives_, gets_;    // of a slice
  size_t longest_ = 0;             // part, in bytes
  Range range_;                    // of every part, in bytes
};

}  // namespace

Status ordered(Cluster& cluster, const Request& request) {
  return InRankOrder(cluster, request).run();
}

}  // namespace stretto::collective
