// The fixed tree over the ranks (kernels.hpp), cut where contributions are missing: what remains is a forest of complete
// subtrees. Combining every complete subtree as soon as it is one, and its partial result in turn, gives the same bits as the
// whole tree at once, whatever the order of arrival.
//
// Everything here is a pure function of the tickets. A rank `apart` counts as absent until everybody is there.
#pragma once
#include "collective/patterns/epoch.hpp"

namespace stretto::collective {

struct Node {
  int begin = 0, end = 0;  // ranks
  int size() const { return end - begin; }
};

class Forest {
 public:
  // room[r]: partial results of subtrees that begin with rank r have a place. tickets, room: by rank, of those that have arrived.
  Forest(int size, const int* tickets, const bool* room, int apart)
      : size_(size), tickets_(tickets), room_(room), apart_(apart) {}

  Node root() const { return {0, size_}; }
  // The largest power of two below the node's size.
  static int left_part(int size) {
    int left = 1;
    while (left * 2 < size) left *= 2;
    return left;
  }
  static Node left(Node n) { return {n.begin, n.begin + left_part(n.size())}; }
  static Node right(Node n) { return {n.begin + left_part(n.size()), n.end}; }

  // Whether these ranks are a node of the tree.
  bool has(Node n) const {
    Node at = root();
    while (at.size() > n.size() && at.begin <= n.begin) at = n.end <= left(at).end ? left(at) : right(at);
    return at.begin == n.begin && at.end == n.end;
  }

  // Whether the node's partial result exists once the first `level` arrivals are combined.
  bool merged(Node n, int level) const {
    if (n.size() < 2 || !room_[n.begin] || (n.begin <= apart_ && apart_ < n.end)) return false;
    for (int r = n.begin; r < n.end; ++r)
      if (tickets_[r] >= level) return false;
    return true;
  }

  bool any_merged(Node n, int level) const {
    return n.size() > 1 && (merged(n, level) || any_merged(left(n), level) || any_merged(right(n), level));
  }

  // Whether more is combined at level `to` than at level `from`; everything is at level `size`.
  bool gains(int from, int to) const { return to == size_ ? from < to : gains(root(), from, to); }

 private:
  bool gains(Node n, int from, int to) const {
    if (n.size() < 2 || merged(n, from)) return false;
    return merged(n, to) || gains(left(n), from, to) || gains(right(n), from, to);
  }

  const int size_;
  const int* tickets_;
  const bool* room_;
  const int apart_;
};

}  // namespace stretto::collective
