// Rounds: a vector travels through staging cells, a range per round.
//
// Round t of a rank stands in cell t modulo cells(). Three numbers per rank tell how far it is: filled (its cell holds its
// contribution), reduced (its slice of the round is reduced and stands in its cell), drained (it reads nobody's cell of the round
// any more). A cell is filled again when everybody has drained it, so a rank may be ahead by the number of cells. Where a round
// is smaller than a cell, a vector of many rounds may be *deep*: a cell then holds several rounds, and a rank may be ahead by all
// that its cells hold.
#pragma once
#include <algorithm>

#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// The elements [begin, end) of a vector.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// Part i of `range` in `parts` parts as equal as whole `grain`s of elements allow.
Range part_of(const Range& range, int i, int parts, size_t grain);

class Rounds {
 public:
  static constexpr uint64_t lag = 3;

  // Cuts request's vector into rounds of whole elements, `per_round` bytes at most (a cell's worth when 0). Deep: a round takes
  // `room` bytes of its cell, at least per_round and equal on all ranks; 0: it has the cell for itself.
  Rounds(Team& team, const Request& request, size_t per_round = 0, size_t room = 0);

  uint32_t count() const { return count_; }
  Range range(uint32_t i) const { return {i * elements_, std::min((i + 1) * elements_, total_)}; }
  uint64_t number(uint32_t i) const { return first_ + i; }
  // Where round i stands, from byte place(i) of its cell on; unless it is deep that is the byte of the vector.
  transport::Cell cell(uint32_t i) const { return {uint32_t(number(i) / parts_), parts_ == 1 ? begin(i) : 0}; }
  size_t place(uint32_t i) const { return parts_ == 1 ? begin(i) : size_t(number(i) % parts_) * room_; }

  // Part `owner` of round i in as many as there are ranks, on cache lines where elements allow.
  Range slice(uint32_t i, int owner) const { return part_of(range(i), owner, team_.size, grain_); }

  // Bytes before a part of the vector, and in it.
  size_t at(const Range& part) const { return part.begin * element_; }
  size_t bytes(const Range& part) const { return part.size() * element_; }

  // Waits until the cell of round i may be filled again; or the rank that keeps it, -1: it is free now.
  Status free(uint32_t i) { return team_.all_drained(last_tenant(i)); }
  int kept_by(uint32_t i) { return team_.not_drained(last_tenant(i)); }

  // Rounds that a rank may have filled and not drained itself.
  uint32_t most_ahead() const { return lag_; }

  // Copies `part` of `vector`, which lies in round i, into this rank's cell.
  Status put(uint32_t i, const Range& part, const void* vector) {
    if (part.size() == 0) return Status::good();
    return team_.staged->put(cell(i), place(i, part), static_cast<const char*>(vector) + at(part), bytes(part));
  }

  // Where rank r's cell holds it.
  Status get(int r, uint32_t i, const Range& part, const void** data) {
    return team_.staged->get(r, {}, cell(i), place(i, part), bytes(part), nullptr, data);
  }
  char* in_cell(uint32_t i, const Range& part) {
    return static_cast<char*>(team_.staged->place(cell(i), place(i, part), bytes(part)));
  }

  // All of round i for everybody to read.
  Status stage(uint32_t i, const void* vector) {
    STRETTO_TRY(free(i));
    STRETTO_TRY(put(i, range(i), vector));
    filled(i);
    return Status::good();
  }

  void filled(uint32_t i) { team_.waiter.announce(team_.mine().filled, number(i)); }
  void reduced(uint32_t i) { team_.waiter.announce(team_.mine().reduced, number(i)); }
  void drained(uint32_t i) { team_.waiter.announce(team_.mine().drained, number(i)); }
  void drained_all() { team_.waiter.announce(team_.mine().drained, number(count_ - 1)); }  // for a rank that reads nothing

  // A rank stages at most most_ahead() rounds before it drains, so its having filled one says what it has drained.
  Status wait_filled(int r, uint32_t i) {
    STRETTO_TRY(team_.waiter.until(team_.board(r).filled, number(i), r));
    team_.seen_drained(r, number(i) - lag_);
    return Status::good();
  }
  bool is_filled(int r, uint32_t i) { return reached(filled_by(r).value.load(std::memory_order_acquire), number(i)); }
  Signal& filled_by(int r) { return team_.board(r).filled; }
  Status wait_reduced(int r, uint32_t i) { return team_.waiter.until(team_.board(r).reduced, number(i), r); }

 private:
  size_t place(uint32_t i, const Range& part) const { return place(i) + at(part) - begin(i); }
  size_t begin(uint32_t i) const { return i * elements_ * element_; }

  // The newest round that must be drained before round i may be filled: the one that stood there before. Where rounds lay
  // otherwise before, that is everything until then.
  uint64_t last_tenant(uint32_t i) const {
    const uint64_t before = number(i) - parts_ * team_.staged->cells();
    return reached(before, team_.rounds_moved) ? before : team_.rounds_moved;
  }

  Team& team_;
  size_t element_, total_, elements_;  // elements_: per round
  size_t grain_;                       // of slices
  uint32_t count_;
  size_t room_;
  uint32_t parts_ = 1;  // rounds in a cell
  uint32_t lag_ = lag;
  uint64_t first_;
};

}  // namespace stretto::collective
