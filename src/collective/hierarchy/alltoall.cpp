// Alltoall over nodes. Every byte leaves its node once, and what ranks of one node give each other goes from buffer to buffer.
//   leaders   rank l of each node carries what its node gives to the ranks number l of the other nodes: first the ranks of a node
//             hand one another what each is to carry, then the rails exchange it, one message per node. The ranks beyond the
//             rails of a node that has more of them are served by the rails in turn, which hand on what came for them
// By messages of pairs: alltoall_messages.cpp.
#include <string.h>

#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

class ClusterAlltoall {
 public:
  ClusterAlltoall(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        block_(request.bytes() / size_t(place_.size)),
        most_(size_t(place_.nodes) * size_t(place_.largest) * size_t(place_.depth())) {}

  // One byte of each block that a rank carries.
  bool has_room() const { return most_ <= room_of_stage; }

  Status run() {
    if (block_ == 0) return Status::good();
    const size_t width = share_of_room(room_of_stage, most_, block_);
    STRETTO_TRY(alltoall_in_node(cluster_, request_));
    for (size_t at = 0; at < block_; at += width) {
      range_ = {at, std::min(at + width, block_)};
      STRETTO_TRY(collect());
      if (carries(place_.local)) STRETTO_TRY(exchange());
      STRETTO_TRY(place_.local_size > place_.rails ? hand_on() : keep());
    }
    return Status::good();
  }

 private:
  // Three stages work in parts of the room: what is sent, what is received, what is put in order between.
  static constexpr size_t room_of_stage = Cluster::room_bytes / 3 / cache_line * cache_line;
  char* room(int i) { return cluster_.room() + size_t(i) * room_of_stage; }

  size_t width() const { return range_.size(); }
  bool carries(int local) const { return local < place_.rails; }
  // Ranks of node n that rail l carries for: numbers l, l + rails, ...
  int served(int n, int l) const { return carries(l) ? (place_.ranks_on(n) - l + place_.rails - 1) / place_.rails : 0; }
  int served_elsewhere(int l) const {
    int ranks = 0;
    for (int n = 0; n < place_.nodes; ++n) ranks += n == place_.node ? 0 : served(n, l);
    return ranks;
  }

  const char* given(int rank) const { return static_cast<char*>(request_.gives[rank].data) + range_.begin; }
  char* got(int rank) const { return static_cast<char*>(request_.gets[rank].data) + range_.begin; }

  // Room 1 of a carrier: what each rank of its node gives, node by node, to the ranks that it serves.
  Status collect() {
    PerRank<Piece> gives(cluster_.lists), gets(cluster_.lists);
    for (Piece* pieces : {gives.of, gets.of}) std::fill_n(pieces, place_.local_size, Piece{});
    char *to = room(0), *from = room(1);
    for (int l = 0; l < place_.rails; ++l) {
      gives[l] = {to, size_t(served_elsewhere(l)) * width()};
      for (int n = 0; n < place_.nodes; ++n)
        for (int k = 0; n != place_.node && k < served(n, l); ++k, to += width())
          memcpy(to, given(place_.rank_at(n, l + k * place_.rails)), width());
    }
    const size_t own = size_t(served_elsewhere(place_.local)) * width();
    for (int l = 0; l < place_.local_size; ++l, from += own) gets[l] = {from, own};
    return cluster_.ship_in_node(Kind::alltoallv, 0, 0, gives, gets);
  }

  // Room 0: the same node by node, rank by rank. Room 2: what came from each node, by the rank that gave it and then by the rank
  // that it is for.
  Status exchange() {
    int *sent = cluster_.numbers(0, 0), *from = cluster_.numbers(0, 1), *received = cluster_.numbers(0, 2),
        *to = cluster_.numbers(0, 3);
    const size_t own = size_t(served_elsewhere(place_.local)) * width();
    size_t before = 0, out = 0, in = 0;  // before: in what each rank gave
    for (int n = 0; n < place_.nodes; ++n) {
      const bool here = n == place_.node;
      const size_t part = here ? 0 : size_t(served(n, place_.local)) * width();
      from[n] = int(out);
      for (int l = 0; l < place_.local_size; ++l, out += part)
        if (part > 0) memcpy(room(0) + out, room(1) + size_t(l) * own + before, part);
      before += part;
      sent[n] = int(out) - from[n];
      to[n] = int(in);
      received[n] = here ? 0 : int(size_t(place_.ranks_on(n)) * size_t(served(place_.node, place_.local)) * width());
      in += size_t(received[n]);
    }
    return cluster_.links->exchange({room(0), sent, from}, {room(2), received, to});
  }

  // Calls take(rank, what it gave to rank k of those that this one serves).
  template <class Take>
  void for_received(int k, Take take) {
    const int ranks = served(place_.node, place_.local);
    const char* from = room(2) + size_t(k) * width();
    for (int n = 0; n < place_.nodes; ++n)
      for (int l = 0; n != place_.node && l < place_.ranks_on(n); ++l, from += size_t(ranks) * width())
        take(place_.rank_at(n, l), from);
  }

  Status keep() {
    for_received(0, [&](int rank, const char* from) { memcpy(got(rank), from, width()); });
    return Status::good();
  }

  Status hand_on() {
    const size_t each = size_t(place_.size - place_.local_size) * width();
    PerRank<Piece> gives(cluster_.lists), gets(cluster_.lists);
    for (Piece* pieces : {gives.of, gets.of}) std::fill_n(pieces, place_.local_size, Piece{});
    char* to = room(0);
    for (int k = 0; k < served(place_.node, place_.local); ++k) {
      gives[place_.local + k * place_.rails] = {to, each};
      for_received(k, [&](int, const char* from) {
        memcpy(to, from, width());
        to += width();
      });
    }
    gets[place_.local % place_.rails] = {room(1), each};
    STRETTO_TRY(cluster_.ship_in_node(Kind::alltoallv, 0, 0, gives, gets));
    const char* from = room(1);
    for (int n = 0; n < place_.nodes; ++n)
      for (int l = 0; n != place_.node && l < place_.ranks_on(n); ++l, from += width())
        memcpy(got(place_.rank_at(n, l)), from, width());
    return Status::good();
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const size_t block_;
  const size_t most_;  // blocks in one stage, at most
  Range range_;        // of every block
};

}  // namespace

Status alltoall_leaders(Cluster& cluster, const Request& request) {
  ClusterAlltoall alltoall(cluster, request);
  return alltoall.has_room() ? alltoall.run() : alltoall_messages(cluster, request);
}

}  // namespace stretto::collective
