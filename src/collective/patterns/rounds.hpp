// Rounds: a vector travels through staging cells, a range per round.
//
// Round t of a rank stands in cell t modulo cells(). Three numbers per rank tell how far it is: filled (its cell holds its
// contribution), reduced (its slice of the round is reduced and stands in its cell), drained (it reads nobody's cell of the round
// any more). A cell is filled again when everybody has drained it, so a rank may be ahead by the number of cells.
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

  // Cuts request's vector into rounds of whole elements, `per_round` bytes at most (a cell's worth when 0).
  Rounds(Team& team, const Request& request, size_t per_round = 0);

  uint32_t count() const { return count_; }
  Range range(uint32_t i) const { return {i * elements_, std::min((i + 1) * elements_, total_)}; }
  uint64_t number(uint32_t i) const { return first_ + i; }
  transport::Cell cell(uint32_t i) const { return {uint32_t(number(i)), i * elements_ * element_}; }

  // Part `owner` of round i in as many as there are ranks, on cache lines where elements allow.
  Range slice(uint32_t i, int owner) const { return part_of(range(i), owner, team_.size, grain_); }

  // Bytes before a part of the vector, and in it.
  size_t at(const Range& part) const { return part.begin * element_; }
  size_t bytes(const Range& part) const { return part.size() * element_; }

  // Waits until the cell of round i may be filled again.
  Status free(uint32_t i) { return team_.all_drained(number(i) - team_.staged->cells()); }

  // Copies `part` of `vector`, which lies in round i, into this rank's cell.
  Status put(uint32_t i, const Range& part, const void* vector) {
    if (part.size() == 0) return Status::good();
    return team_.staged->put(cell(i), at(part), static_cast<const char*>(vector) + at(part), bytes(part));
  }

  // Where rank r's cell holds it.
  Status get(int r, uint32_t i, const Range& part, const void** data) {
    return team_.staged->get(r, {}, cell(i), at(part), bytes(part), nullptr, data);
  }
  char* place(uint32_t i, const Range& part) { return static_cast<char*>(team_.staged->place(cell(i), at(part), bytes(part))); }

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

  // A rank stages at most `lag` rounds before it drains, so its having filled one says what it has drained.
  Status wait_filled(int r, uint32_t i) {
    STRETTO_TRY(team_.waiter.until(team_.board(r).filled, number(i), r));
    team_.seen_drained(r, number(i) - lag);
    return Status::good();
  }
  Status wait_reduced(int r, uint32_t i) { return team_.waiter.until(team_.board(r).reduced, number(i), r); }

 private:
  Team& team_;
  size_t element_, total_, elements_;  // elements_: per round
  size_t grain_;                       // of slices
  uint32_t count_;
  uint64_t first_;
};

}  // namespace stretto::collective
