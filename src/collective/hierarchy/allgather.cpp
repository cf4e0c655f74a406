// Allgather and allgatherv over nodes: every rank knows the bytes of every block. (N-1)/N of all blocks leave each of N equal
// nodes, which is what the others have to be given.
//   leader   the first rank of each node gathers its node's blocks, exchanges them with the other nodes' and gives all to its
//   node leaders  every rail carries the blocks of its own ranks, slice by slice: while some slices are between nodes others are
//   given
//            out. The ranks beyond the rails of a node that has more of them leave their blocks to the rails in turn
#include <string.h>

#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

class ClusterAllgather {
 public:
  ClusterAllgather(Cluster& cluster, const Request& request)
      : cluster_(cluster), place_(cluster.place), request_(request), blocks_(request.gets), longest_(request.bytes()) {}

 protected:
  void cut_into(size_t width) {
    width_ = width;
    count_ = longest_ == 0 ? 0 : uint32_t((longest_ + width - 1) / width);
  }
  Range slice(uint32_t i) const { return {i * width_, std::min((i + 1) * width_, longest_)}; }
  Piece block(int rank, const Range& range) const { return cut(blocks_[rank], range); }
  Piece own(const Range& range) const { return cut({request_.gives->data, blocks_[place_.rank].bytes}, range); }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const Piece* const blocks_;  // by rank
  const size_t longest_;
  size_t width_ = 0;  // of a slice: the same bytes of every block
  uint32_t count_ = 0;
};

class ByLeader : ClusterAllgather {
 public:
  using ClusterAllgather::ClusterAllgather;

  Status run() {
    cut_into(share_of_room(Cluster::room_bytes, size_t(place_.size), longest_));
    for (uint32_t i = 0; i < count_; ++i) {
      const Range range = slice(i);
      lay_out(range);
      char* all = stands_in_order(range) ? static_cast<char*>(block(place_.by_node[0], range).data) : cluster_.room();
      STRETTO_TRY(gather(range, all + offsets()[place_.node]));
      if (place_.leads(0)) STRETTO_TRY(cluster_.links->allgather_blocks({all, bytes(), offsets()}));
      STRETTO_TRY(cluster_.bcast_in_node(0, all, total_));
      if (all == cluster_.room()) put_into_place(range);
    }
    return Status::good();
  }

 private:
  int* bytes() { return cluster_.numbers(0, 0); }
  int* offsets() { return cluster_.numbers(0, 1); }

  // All blocks of a slice node by node, one after the other.
  void lay_out(const Range& range) {
    total_ = 0;
    for (int n = 0; n < place_.nodes; ++n) {
      offsets()[n] = int(total_);
      for (int l = 0; l < place_.ranks_on(n); ++l) total_ += block(place_.rank_at(n, l), range).bytes;
      bytes()[n] = int(total_) - offsets()[n];
    }
  }

  // Whether the result is laid out like that by itself; each rank's own business.
  bool stands_in_order(const Range& range) const {
    if (range.size() < longest_) return false;
    const char* next = static_cast<char*>(blocks_[place_.by_node[0]].data);
    for (int i = 0; i < place_.size; ++i) {
      const Piece& piece = blocks_[place_.by_node[i]];
      if (piece.data != next) return false;
      next += piece.bytes;
    }
    return true;
  }

  Status gather(const Range& range, char* to) {
    Piece gives = own(range);
    PerRank<Piece> gets(cluster_.lists);
    bool equal = true;
    for (int l = 0; l < place_.local_size; ++l) {
      gets[l] = {to, block(place_.rank_at(place_.node, l), range).bytes};
      equal = equal && gets[l].bytes == range.size();
      to += gets[l].bytes;
    }
    return cluster_.ship_in_node(equal ? Kind::gather : Kind::gatherv, 0, equal ? range.size() : 0, &gives,
                                 place_.leads(0) ? gets.of : nullptr);
  }

  void put_into_place(const Range& range) {
    const char* from = cluster_.room();
    for (int i = 0; i < place_.size; ++i) {
      Piece piece = block(place_.by_node[i], range);
      if (piece.bytes > 0) memcpy(piece.data, from, piece.bytes);
      from += piece.bytes;
    }
  }

  size_t total_ = 0;
};

class ByRails : ClusterAllgather {
 public:
  ByRails(Cluster& cluster, const Request& request) : ClusterAllgather(cluster, request), deepest_(place_.depth()) {}

  // At least a line of every block that a rail carries.
  bool has_room() const { return carried_blocks() * cache_line <= room_of_slot; }

  Status run() {
    constexpr uint32_t ahead = Links::slots - 1;
    cut_into(std::min(share_of_room(room_of_slot, carried_blocks(), longest_),
                      share_of_room(Links::sent_unasked, size_t(deepest_), longest_)));
    for (uint32_t i = 0; i < count_ + ahead; ++i) {
      if (i < count_) STRETTO_TRY(begin(i));
      if (i >= ahead && i - ahead < count_) STRETTO_TRY(give_out(i - ahead));
    }
    return Status::good();
  }

 private:
  static constexpr size_t room_of_slot = Cluster::room_bytes / Links::slots;
  static int slot(uint32_t i) { return int(i % Links::slots); }
  size_t carried_blocks() const { return size_t(place_.nodes) * size_t(deepest_); }
  char* room(uint32_t i) { return cluster_.room() + size_t(slot(i)) * room_of_slot; }
  bool carries() const { return place_.local < place_.rails; }

  int carried(int n, int l, int k) const { return place_.carried(n, l, k); }

  // What the rails carry for others must have come to them first.
  Status begin(uint32_t i) {
    const bool first = place_.local_size > place_.rails;
    if (!first) STRETTO_TRY(start(i));
    STRETTO_TRY(share_own(slice(i)));
    return first ? start(i) : Status::good();
  }

  Status share_own(const Range& range) {
    Piece gives = own(range);
    PerRank<Piece> gets(cluster_.lists);
    for (int l = 0; l < place_.local_size; ++l) gets[l] = block(place_.rank_at(place_.node, l), range);
    return share(gives, gets);
  }

  Status share(const Piece& gives, Piece* gets) {
    size_t most = 0;
    for (int l = 0; l < place_.local_size; ++l) most = std::max(most, gets[l].bytes);
    return most == 0 ? Status::good() : cluster_.ship_in_node(Kind::allgatherv, 0, most, &gives, gets);
  }

  Status start(uint32_t i) {
    if (!carries()) return Status::good();
    const Range range = slice(i);
    int *bytes = cluster_.numbers(slot(i), 0), *offsets = cluster_.numbers(slot(i), 1), next = 0;
    for (int n = 0; n < place_.nodes; ++n) {
      offsets[n] = next;
      for (int k = 0; k < deepest_; ++k)
        if (int r = carried(n, place_.local, k); r >= 0) next += int(block(r, range).bytes);
      bytes[n] = next - offsets[n];
    }
    char* to = room(i) + offsets[place_.node];
    for (int k = 0; k < deepest_; ++k) {
      int r = carried(place_.node, place_.local, k);
      if (r < 0) continue;
      Piece piece = r == place_.rank ? own(range) : block(r, range);
      if (piece.bytes > 0) memcpy(to, piece.data, piece.bytes);
      to += piece.bytes;
    }
    return cluster_.links->start_allgather_blocks({room(i), bytes, offsets}, slot(i));
  }

  Status give_out(uint32_t i) {
    if (carries()) STRETTO_TRY(cluster_.links->finish(slot(i)));
    for (int n = 0; n < place_.nodes; ++n)
      if (n != place_.node) STRETTO_TRY(give_out(i, n));
    return Status::good();
  }

  Status give_out(uint32_t i, int n) {
    const Range range = slice(i);
    char* from = carries() ? room(i) + cluster_.numbers(slot(i), 1)[n] : nullptr;
    for (int k = 0; k < deepest_; ++k) {
      Piece gives{};
      PerRank<Piece> gets(cluster_.lists);
      std::fill_n(gets.of, place_.local_size, Piece{});
      for (int l = 0; l < place_.rails; ++l)
        if (int r = carried(n, l, k); r >= 0) gets[l] = block(r, range);
      if (carries()) gives = {from, gets[place_.local].bytes};
      STRETTO_TRY(share(gives, gets));
      from += gives.bytes;
    }
    return Status::good();
  }

  const int deepest_;
};

}  // namespace

Status allgather_leader(Cluster& cluster, const Request& request) {
  return ByLeader(cluster, request).run();
}

Status allgather_leaders(Cluster& cluster, const Request& request) {
  ByRails rails(cluster, request);
  return rails.has_room() ? rails.run() : allgather_leader(cluster, request);
}

}  // namespace stretto::collective
