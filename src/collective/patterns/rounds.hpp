// Rounds: a vector travels through staging cells, a range per round.
//
// Round t of a rank stands in cell t modulo cells(). Three numbers per rank tell how far it is: filled (its cell holds its
// contribution), reduced (its slice of the round is reduced and stands in its cell), drained (it reads nobody's cell of the round
// any more). A cell is filled again when everybody has drained it, so a rank may be ahead by the number of cells. Where a round
// is smaller than a cell, a vector of many rounds may be *deep*: a cell then holds several rounds, and a rank may be ahead by all
// that its cells hold. It chooses where each stands, and says so on its board: how far it goes ahead is its own business.
#pragma once
#include <algorithm>

#include "base/cpu.hpp"
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// The elements [begin, end) of a vector.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// So many elements fill cache lines; 1 where they do not.
constexpr size_t line_grain(size_t element) {
  return cache_line % element == 0 ? cache_line / element : 1;
}

// Part i of `range` in `parts` parts as equal as whole `grain`s of elements allow.
Range part_of(const Range& range, int i, int parts, size_t grain);

// In what pieces a message of so many bytes is written to a cell and read from it: small enough that the last one's second copy
// is short, large enough that announcing it costs little. Those of long messages are larger than a first-level cache: a line that
// has left its writer's comes to a reader much sooner (2 ranks, bcast of 128 KiB: 18 us instead of 25). Ranks that both write and
// read have something to do meanwhile: they wait the less the fewer pieces there are (allgather of 32 KiB: 9 us instead of 14).
constexpr size_t staged_piece(size_t bytes, bool both_ways = false) {
  constexpr size_t least = 8 << 10, large = 64 << 10;
  return bytes < (both_ways ? 12u << 10 : 48u << 10) ? std::max(bytes / 4, least) : large;
}

class Rounds {
 public:
  static constexpr uint64_t lag = 3;

  // Cuts request's vector into rounds of whole elements, `per_round` bytes at most (a cell's worth when 0). Deep: a round takes
  // `room` bytes of its cell, at least per_round and equal on all ranks; 0: it has the cell for itself.
  Rounds(Team& team, const Request& request, size_t per_round = 0, size_t room = 0);

  uint32_t count() const { return count_; }
  Range range(uint32_t i) const { return {i * elements_, std::min((i + 1) * elements_, total_)}; }
  uint64_t number(uint32_t i) const { return first_ + i; }
  // Where round i of rank r stands, from byte `at` of its cell on; unless it is deep that is the byte of the vector.
  struct Place {
    transport::Cell cell;
    size_t at;
  };
  Place place_of(int r, uint32_t i) {
    if (!deep()) return {{uint32_t(number(i)), begin(i)}, begin(i)};
    const uint32_t p = team_.board(r).places[number(i) % place_ring];
    return {{p / parts_, 0}, size_t(p % parts_) * room_};
  }
  // Where every rank's stands, of rounds that are not deep.
  transport::Cell cell(uint32_t i) const { return {uint32_t(number(i)), begin(i)}; }
  size_t place(uint32_t i) const { return begin(i); }
  // Before round i is put: where this rank's stands. It is free.
  void choose_place(uint32_t i);

  // Part `owner` of round i in as many as there are ranks, on cache lines where elements allow.
  Range slice(uint32_t i, int owner) const { return part_of(range(i), owner, team_.size, grain_); }

  // Bytes before a part of the vector, and in it.
  size_t at(const Range& part) const { return part.begin * element_; }
  size_t bytes(const Range& part) const { return part.size() * element_; }

  // Waits until the cell of round i may be filled again; or the rank that keeps it, -1: it is free now.
  Status free(uint32_t i) { return team_.all_drained(last_tenant(i)); }
  int kept_by(uint32_t i) { return team_.not_drained(last_tenant(i)); }

  // For a rank that reads nothing, before round i: stays for a moment where its peers are farther behind than what is best for
  // the caches. Once only, and not where somebody is likely to be late: then it goes ahead.
  void linger(uint32_t i);

  // Rounds that a rank may have filled and not drained itself.
  uint32_t most_ahead() const { return lag_; }

  // Copies `part` of `vector`, which lies in round i, into this rank's cell.
  Status put(uint32_t i, const Range& part, const void* vector) {
    if (part.size() == 0) return Status::good();
    const Place where = place_of(team_.rank, i);
    return team_.staged->put(where.cell, in(where, i, part), static_cast<const char*>(vector) + at(part), bytes(part));
  }

  // Where rank r's cell holds it.
  Status get(int r, uint32_t i, const Range& part, const void** data) {
    const Place where = place_of(r, i);
    return team_.staged->get(r, {}, where.cell, in(where, i, part), bytes(part), nullptr, data);
  }
  char* in_cell(uint32_t i, const Range& part) {
    const Place where = place_of(team_.rank, i);
    return static_cast<char*>(team_.staged->place(where.cell, in(where, i, part), bytes(part)));
  }

  // All of round i for everybody to read.
  Status stage(uint32_t i, const void* vector) {
    STRETTO_TRY(free(i));
    choose_place(i);
    STRETTO_TRY(put(i, range(i), vector));
    filled(i);
    return Status::good();
  }

  void filled(uint32_t i) { team_.waiter.announce(team_.mine().filled, number(i)); }
  void reduced(uint32_t i) { team_.waiter.announce(team_.mine().reduced, number(i)); }
  void drained(uint32_t i) { team_.waiter.announce(team_.mine().drained, number(i)); }
  void drained_all() { team_.waiter.announce(team_.mine().drained, number(count_) - 1); }  // for a rank that reads nothing

  // At the end of a rank that stages little: fetches the lines of as many rounds more from those who read them last, while there
  // is time. Programs repeat themselves, so the next vector will be as long as this one. AMD's CPUs get them sooner when they are
  // stored to (Zen 5, bcast of 16 KiB: 0.54 us instead of 0.84).
  void fetch_next() {
    constexpr size_t most = 24 << 10;
    if (cpu_here() == Cpu::amd || count_ > team_.staged->cells() || total_ * element_ > most) return;
    for (uint32_t i = 0; i < count_; ++i) {
      const size_t bytes = range(i).size() * element_;
      const void* next = team_.staged->place({uint32_t(number(count_ + i)), 0}, 0, bytes);
      if (next != nullptr) prefetch_for_write(next, bytes);
    }
  }

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
  bool deep() const { return parts_ > 1; }
  void lay_out();
  size_t in(const Place& where, uint32_t i, const Range& part) const { return where.at + at(part) - begin(i); }
  size_t begin(uint32_t i) const { return i * elements_ * element_; }

  // The newest round that must be drained before round i may be filled: the one that stood there before. Where rounds lay
  // otherwise before, that is everything until then.
  uint64_t last_tenant(uint32_t i) const { return before(i, parts_ * team_.staged->cells()); }
  uint64_t before(uint32_t i, uint32_t rounds) const {
    const uint64_t earlier = number(i) - rounds;
    return reached(earlier, team_.rounds_moved) ? earlier : team_.rounds_moved;
  }

  Team& team_;
  size_t element_, total_, elements_;  // elements_: per round
  size_t grain_;                       // of slices
  uint32_t count_;
  size_t room_;
  uint32_t parts_ = 1;  // rounds in a cell
  uint32_t lag_ = lag;
  bool goes_ahead_ = false;  // does not linger any more
  uint64_t first_;
};

// For each round stage, reduce, collect; of three rounds at a time, so that a rank has something to do while others are not as
// far.
template <typename Stage, typename Reduce, typename Collect>
Status in_three_stages(uint32_t rounds, Stage stage, Reduce reduce, Collect collect) {
  for (uint32_t step = 0; step < rounds + 2; ++step) {
    if (step < rounds) STRETTO_TRY(stage(step));
    if (step >= 1 && step - 1 < rounds) STRETTO_TRY(reduce(step - 1));
    if (step >= 2) STRETTO_TRY(collect(step - 2));
  }
  return Status::good();
}

}  // namespace stretto::collective
