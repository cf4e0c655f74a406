// The arithmetic of combining what has arrived of a slice: along the fixed tree, or in the order of arrival.
#pragma once
#include <algorithm>

#include "collective/patterns/combine.hpp"
#include "collective/patterns/forest.hpp"

namespace stretto::collective {

class Merge {
 public:
  // For one slice. Slices of different sizes may use one object.
  Merge(Team& team, const Request& request, const Epoch& epoch)
      : lists_(team.lists),
        request_(request),
        epoch_(epoch),
        ranks_(team.size),
        by_arrival_(team.arrival_order && request.op != kernels::Op::user),
        inputs_(lists_),
        rooms_(lists_),
        has_room_(lists_) {
    std::fill_n(has_room_.of, ranks_, false);
  }

  // Where rank r's contribution stands, and where the partial result of what begins with it may (null: nowhere). To be set for
  // every rank that has arrived before anything else is asked.
  void place(int r, const void* input, void* room, bool has_room) {
    inputs_[r] = static_cast<const char*>(input);
    rooms_[r] = static_cast<char*>(room);
    has_room_[r] = has_room && request_.op != kernels::Op::user;
  }
  void keep_apart(int r) { apart_ = r; }

  // Whether going from level `from` to `to` combines anything.
  bool gains(int from, int to) const;

  // Whether what rank r has at `level` is a partial result, in its room, and no longer its input alone.
  bool holds_partial(int r, int level) const;

  // Combines all that can be at level `to`, which is not everything, into the partial results' places; n elements.
  void advance(int from, int to, size_t n) const;

  // out = everything, at elements [begin, begin + n) of the slice. `out` may be the place of an input or a partial result at the
  // same elements, but not with a user's operation.
  void finish(int from, void* out, size_t begin, size_t n) const;

 private:
  struct Block {
    size_t begin, n;  // elements
  };
  Forest forest() const { return {ranks_, epoch_.tickets(), has_room_, apart_}; }
  size_t at(const Block& b) const { return b.begin * request_.element; }
  void advance(Node node, int from, int to, size_t n) const;
  void combine_node(Node node, int from, void* out, const Block& block) const;
  void combine_halves(Node node, int from, char* out, const Block& block) const;
  const void* value(Node node, int from, char* room, const Block& block) const;
  int keeper() const;
  int list(int from, int to, const char** inputs) const;
  void combine_list(int from, int to, char* out, const Block& block) const;

  Lists& lists_;
  const Request& request_;
  const Epoch& epoch_;
  const int ranks_;
  const bool by_arrival_;
  int apart_ = -1;
  PerRank<const char*> inputs_;
  PerRank<char*> rooms_;
  PerRank<bool> has_room_;
};

}  // namespace stretto::collective
