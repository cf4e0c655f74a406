#include "collective/patterns/merge.hpp"

#include <algorithm>

namespace stretto::collective {

bool Merge::gains(int from, int to) const {
  if (to == ranks_) return from < to;
  if (!by_arrival_) return forest().gains(from, to);
  if (keeper() < 0) return false;
  PerRank<const char*> inputs(lists_);
  return list(from, to, inputs) > 1 && list(from, from, inputs) < list(from, to, inputs);
}

bool Merge::holds_partial(int r, int level) const {
  if (by_arrival_) {
    PerRank<const char*> inputs(lists_);
    return keeper() == r && list(level, level, inputs) == 1 && level > 1;
  }
  for (int end = r + 2; end <= ranks_; ++end)
    if (forest().has({r, end}) && forest().merged({r, end}, level)) return true;
  return false;
}

void Merge::advance(int from, int to, size_t n) const {
  if (by_arrival_)
    combine_list(from, to, rooms_[keeper()], {0, n});
  else
    advance(forest().root(), from, to, n);
}

void Merge::finish(int from, void* out, size_t begin, size_t n) const {
  if (n == 0) return;
  if (by_arrival_)
    combine_list(from, ranks_, static_cast<char*>(out), {begin, n});
  else
    combine_node(forest().root(), from, out, {begin, n});
}

void Merge::advance(Node node, int from, int to, size_t n) const {
  if (node.size() < 2 || forest().merged(node, from)) return;
  if (forest().merged(node, to)) return combine_node(node, from, rooms_[node.begin], {0, n});
  advance(Forest::left(node), from, to, n);
  advance(Forest::right(node), from, to, n);
}

// Where nothing of the node is combined yet, in one pass over its leaves.
void Merge::combine_node(Node node, int from, void* out, const Block& block) const {
  const Forest trees = forest();
  if (trees.any_merged(Forest::left(node), from) || trees.any_merged(Forest::right(node), from))
    return combine_halves(node, from, static_cast<char*>(out), block);
  PerRank<const void*> leaves(lists_);
  for (int r = node.begin; r < node.end; ++r) leaves[r - node.begin] = inputs_[r] + at(block);
  combine(request_, leaves, node.size(), out, block.n);
}

void Merge::combine_halves(Node node, int from, char* out, const Block& block) const {
  List<char> left_room(lists_, Lists::between), right_room(lists_, Lists::between);
  const size_t step = std::max<size_t>(Lists::between / request_.element, 1);
  for (size_t done = 0; done < block.n; done += step) {
    const Block part{block.begin + done, std::min(step, block.n - done)};
    const void* halves[2] = {value(Forest::left(node), from, left_room, part),
                             value(Forest::right(node), from, right_room, part)};
    combine(request_, halves, 2, out + done * request_.element, part.n);
  }
}

const void* Merge::value(Node node, int from, char* room, const Block& block) const {
  if (node.size() == 1) return inputs_[node.begin] + at(block);
  if (forest().merged(node, from)) return rooms_[node.begin] + at(block);
  combine_node(node, from, room, block);
  return room;
}

// In the order of arrival there is one partial result, of all arrivals so far, with the first of them that has room for it.
int Merge::keeper() const {
  for (int i = 0; i < epoch_.level(); ++i)
    if (int r = epoch_.arrived(i); has_room_[r] && r != apart_) return r;
  return -1;
}

// The partial result at level `from`, if there is one, and what has arrived since. All contributions before the keeper's own are
// in the partial result or in the list, so it must not come into being before the keeper does.
int Merge::list(int from, int to, const char** inputs) const {
  const int first = keeper();
  const bool whole = to == ranks_;
  int n = 0, combined = 0;
  for (int i = 0; i < from; ++i)
    if (epoch_.arrived(i) != apart_) ++combined;
  const bool partial = first >= 0 && combined > 1 && epoch_.tickets()[first] < from;
  if (partial) inputs[n++] = rooms_[first];
  for (int i = 0; i < to; ++i) {
    const int r = epoch_.arrived(i);
    const bool in_partial = partial && i < from && r != apart_;
    if (!in_partial && (whole || r != apart_)) inputs[n++] = inputs_[r];
  }
  return n;
}

void Merge::combine_list(int from, int to, char* out, const Block& block) const {
  PerRank<const char*> list_of(lists_);
  PerRank<const void*> inputs(lists_);
  const int n = list(from, to, list_of);
  for (int i = 0; i < n; ++i) inputs[i] = list_of[i] + at(block);
  combine(request_, inputs, n, out, block.n);
}

}  // namespace stretto::collective
