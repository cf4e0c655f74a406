// What gather and scatter over nodes have in common: the root's node by itself, and for every other node a choice that the root
// and the node come to by the same facts, how many bytes the node gives or gets. Few travel as one message between the root and
// the node's first rank; many as messages of each rank, from and to where they are.
#pragma once
#include "collective/hierarchy/pieces.hpp"

namespace stretto::collective {

class Rooted {
 public:
  // blocks: by rank, on the root. `block`: of every rank where all are equal (`known`), else of this rank.
  Rooted(Cluster& cluster, int root, const Piece* blocks, size_t block, bool known)
      : cluster_(cluster),
        place_(cluster.place),
        root_(root),
        root_node_(place_.node_of[root]),
        root_local_(place_.local_of[root]),
        blocks_(blocks),
        block_(block),
        known_(known) {}

 protected:
  bool is_root() const { return place_.rank == root_; }
  bool here() const { return place_.node == root_node_; }

  // On a node without the root: how many bytes its ranks give or get. All of them know afterwards.
  Status find_sizes() {
    if (known_)
      for (int l = 0; l < place_.local_size; ++l) sizes_[l] = block_;
    else
      STRETTO_TRY(tell_sizes());
    for (int l = 0; l < place_.local_size; ++l) total_ += sizes_[l];
    return Status::good();
  }

  bool one_message(int ranks, size_t bytes) const {
    return ranks > 1 && bytes <= std::min(largest_packed, Cluster::room_bytes / size_t(place_.nodes));
  }
  // Whether this rank has messages of its own whatever the others of its node give or get: it need not meet them first.
  bool surely_alone() const { return block_ > largest_packed; }
  bool one_message_here() const { return one_message(place_.local_size, total_); }

  // On the root: of all ranks of a node.
  size_t total_of(int n) const {
    size_t bytes = 0;
    for (int l = 0; l < place_.ranks_on(n); ++l) bytes += of(n, l).bytes;
    return bytes;
  }
  const Piece& of(int n, int l) const { return blocks_[place_.rank_at(n, l)]; }

  // Whether a node's pieces stand one after the other, so that one message can be of them all.
  bool joined(int n) const {
    const char* next = static_cast<char*>(of(n, 0).data);
    for (int l = 0; l < place_.ranks_on(n); ++l) {
      if (of(n, l).data != next) return false;
      next += of(n, l).bytes;
    }
    return true;
  }

  // Calls `packed(n, bytes)` or `single(n, l)` for each node, each rank, that the root has a message for or from.
  template <class Packed, class Single>
  Status for_messages(Packed packed, Single single) {
    for (int n = 0; n < place_.nodes; ++n) {
      const size_t bytes = n == root_node_ ? 0 : total_of(n);
      if (bytes == 0) continue;
      if (one_message(place_.ranks_on(n), bytes))
        STRETTO_TRY(packed(n, bytes));
      else
        for (int l = 0; l < place_.ranks_on(n); ++l)
          if (of(n, l).bytes > 0) STRETTO_TRY(single(n, l));
    }
    return Status::good();
  }

  // A rank's bytes on their way, in messages that are sent unasked while what a late rank's MPI then has to keep is bounded.
  Status receive(int from, const Piece& piece) {
    return in_messages(piece, [&](char* data, size_t bytes) { return cluster_.links->receive(from, data, bytes); });
  }
  Status send(int to, const Piece& piece) {
    return in_messages(piece, [&](char* data, size_t bytes) { return cluster_.links->send(to, data, bytes); });
  }

  // The root's pieces of its own node.
  const Piece* local_pieces() {
    for (int l = 0; l < place_.local_size; ++l) pieces_[l] = of(place_.node, l);
    return pieces_;
  }
  // Those of a node without the root, one after the other at `data`.
  const Piece* stacked_pieces(char* data) {
    for (int l = 0; l < place_.local_size; data += sizes_[l++]) pieces_[l] = {data, sizes_[l]};
    return pieces_;
  }

  Cluster& cluster_;
  const Placement& place_;
  const int root_, root_node_, root_local_;
  const Piece* const blocks_;
  const size_t block_;
  const bool known_;
  size_t total_ = 0;

 private:
  template <class Start>
  Status in_messages(const Piece& piece, Start start) {
    const size_t most = piece.bytes <= Links::kept_unasked / size_t(place_.size) ? Links::sent_unasked : piece.bytes;
    for (size_t at = 0; at < piece.bytes; at += most)
      STRETTO_TRY(start(static_cast<char*>(piece.data) + at, std::min(most, piece.bytes - at)));
    return Status::good();
  }

  static constexpr size_t largest_packed = Links::sent_unasked;

  Status tell_sizes() {
    uint64_t own = block_;
    Piece gives{&own, sizeof own}, gets[max_team];
    for (int l = 0; l < place_.local_size; ++l) gets[l] = {&sizes_[l], sizeof sizes_[l]};
    return cluster_.ship_in_node(Kind::allgather, 0, sizeof own, &gives, gets);
  }

  uint64_t sizes_[max_team];
  Piece pieces_[max_team];
};

}  // namespace stretto::collective
