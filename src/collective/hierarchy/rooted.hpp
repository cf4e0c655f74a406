// What gather and scatter over nodes have in common: the root's node by itself, and for every other node a choice that the root
// and the node come to by the same facts, how many bytes the node gives or gets. Few travel as one message between the root and
// the node's first rank; many as messages of each rank, from and to where they are, and so do blocks that vary, of which the root
// may know other sizes than the others: more room than there is to come.
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
        known_(known),
        pieces_(cluster.lists) {}

 protected:
  bool is_root() const { return place_.rank == root_; }
  bool here() const { return place_.node == root_node_; }

  bool one_message(int n) const {
    return known_ && place_.ranks_on(n) > 1 &&
           total_of(n) <= std::min(Links::sent_unasked, Cluster::room_bytes / size_t(place_.nodes));
  }
  bool one_message_here() const { return one_message(place_.node); }

  // Of all ranks of a node, where blocks are equal.
  size_t total_of(int n) const { return block_ * size_t(place_.ranks_on(n)); }
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
      if (n == root_node_) continue;
      if (one_message(n))
        STRETTO_TRY(packed(n, total_of(n)));
      else
        for (int l = 0; l < place_.ranks_on(n); ++l)
          if (of(n, l).bytes > 0) STRETTO_TRY(single(n, l));
    }
    return Status::good();
  }

  // The root's pieces of its own node.
  Piece* local_pieces() {
    for (int l = 0; l < place_.local_size; ++l) pieces_[l] = of(place_.node, l);
    return pieces_;
  }
  // Those of a node without the root, one after the other at `data`.
  Piece* stacked_pieces(char* data) {
    for (int l = 0; l < place_.local_size; data += block_) pieces_[l++] = {data, block_};
    return pieces_;
  }

  Cluster& cluster_;
  const Placement& place_;
  const int root_, root_node_, root_local_;
  const Piece* const blocks_;
  const size_t block_;
  const bool known_;

 private:
  PerRank<Piece> pieces_;
};

}  // namespace stretto::collective
