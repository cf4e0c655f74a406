// Rounds: a vector travels through staging cells, a range per round.
//
// Three numbers per rank tell how far it is: filled (its cell holds its contribution), reduced (its slice of the round is reduced
// and stands in its cell), drained (it reads nobody's cell of the round any more). Where a round stands is overwritten once
// everybody has drained what stood there before, so a rank may be ahead by what its cells hold. All ranks lay their rounds alike.
//
// Most rounds go round a ring of bytes, which is made of all cells but the first few: each takes the next piece, its room, a
// power of two at a multiple of itself. Where each rank has a core the ring is twice as large as a second-level cache: so what a
// rank stores to has left the caches of those who read it a turn ago, and need not be claimed back from them line by line (Zen 4,
// 2 ranks, 128 KiB: 4 us instead of 15). Rounds that are large for the ring stay in the first few cells by turns, and those whose
// lines are to change hands. A communicator begins with a small ring, as not all have use for more.
//
// Where ranks do not know how much the others stage, each has as many rounds as it needs, in a part of the ring that all take for
// the call. Rounds of one number then have nothing in common; when a rank leaves the call it has drained all of everybody.
#pragma once
#include <algorithm>
#include <bit>

#include "base/cpu.hpp"
#include "collective/patterns/exchange.hpp"
#include "collective/patterns/range.hpp"
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// In what pieces a message of so many bytes is written to a cell and read from it: small enough that the last one's second copy
// is short, large enough that announcing it costs little. Those of long messages are larger than a first-level cache: a line that
// has left its writer's comes to a reader much sooner (Intel, 2 ranks, bcast of 128 KiB: 18 us instead of 25); where that makes
// no difference they are finer (Zen 4: 8 KiB 0.6 us instead of 1.0, 128 KiB 4.8 instead of 5.4). Ranks that both write and read
// have something to do meanwhile: they wait the less the fewer pieces there are (allgather of 32 KiB: 9 us instead of 14).
inline constexpr size_t long_piece = 64 << 10;
inline size_t staged_piece(const Team& team, size_t bytes, bool both_ways = false) {
  constexpr size_t least = 8 << 10;
  if (team.fine_pieces && !both_ways && bytes < (256 << 10)) return std::clamp<size_t>(bytes / 4, 2 << 10, 16 << 10);
  return bytes < (both_ways ? 12u << 10 : 48u << 10) ? std::max(bytes / 4, least) : long_piece;
}

class Rounds {
 public:
  static constexpr uint64_t lag = 3;

  static constexpr uint32_t staying = 4;   // cells in which rounds stay; there are more
  static constexpr uint64_t at_least = 8;  // rounds that the ring holds, else they stay

  // Cuts request's vector into rounds of whole elements, `per_round` bytes at most (a cell's worth when 0). Where several such
  // vectors travel side by side, a round has a piece of each.
  enum class Course : uint8_t { any, stay };
  Rounds(Team& team, const Request& request, size_t per_round = 0, int pieces = 1, Course course = Course::any);

  // The same of rounds that are one rank's own, of vectors of `bytes` bytes. All ranks take the part, once for a call, and end
  // with drained_all().
  struct Part {
    uint64_t first, begin, grown_at;
  };
  static Part take_part(Team& team);
  static size_t most_in_part(const Team& team) { return std::min(team.staged->cell_bytes(), part_bytes(team) / 4); }
  Rounds(Team& team, const Part& part, size_t bytes, size_t per_round, int pieces);

  // Bytes that a rank can stage of a long vector before anybody reads it.
  static size_t most_held(const Team& team) { return team.staged->cell_bytes() * (team.staged->cells() - staying); }
  // Of two ranks, before times are taken, which would tell little else: there is memory under their rings, and it is in a cache.
  // Each sees to its own the first time, and the second time, when the other has, to its view of the other's. Then no more but
  // `anew`, where something else has been done for long.
  static void warm_up(Team& team, bool anew = false);

  uint32_t count() const { return count_; }
  Range range(uint32_t i) const { return {i * elements_, std::min((i + 1) * elements_, total_)}; }
  uint64_t number(uint32_t i) const { return first_ + i; }

  // Slice `owner` of round i in as many as there are owners, on cache lines where elements allow.
  Range slice(uint32_t i, int owner, int owners) const { return part_of(range(i), owner, owners, grain_); }
  Range slice(uint32_t i, int owner) const { return slice(i, owner, team_.size); }

  // Bytes before a part of the vector, and in it.
  size_t at(const Range& part) const { return part.begin * element_; }
  size_t bytes(const Range& part) const { return part.size() * element_; }

  // Where a piece of round i begins in the cells of each rank. (One expression: a struct that is put together in memory, and read
  // from there as a whole, waits for all stores before it.)
  struct Place {
    uint32_t cell;
    size_t at;
    operator transport::Cell() const { return {cell, 0}; }
  };
  Place place(uint32_t i, int piece = 0) const {
    const uint64_t before = uint64_t(piece) * piece_;
    return goes_ ? in_ring(begin(i) + before) : Place{uint32_t(number(i)) % staying, before};
  }
  // Where a part of the vector is, which lies in round i.
  Place place(uint32_t i, const Range& part) const {
    const Place begin = place(i);
    return {begin.cell, begin.at + at(part) - i * elements_ * element_};
  }

  // Waits until the room of round i may be filled; or the rank that keeps it, -1: it is free now.
  Status free(uint32_t i) { return team_.all_drained(tenant(i)); }
  int kept_by(uint32_t i) { return team_.not_drained(tenant(i)); }

  // Whether what is put in so many bytes bypasses the caches, as trials stand.
  bool goes_past_caches(size_t bytes) const { return goes_ && bytes >= tried_from && team_.puts.fastest(bytes) == streamed; }

  // Rounds that a rank may have filled and not drained itself, where both happen as they come.
  uint32_t most_ahead() const { return uint32_t(goes_ ? ring_.bytes / room_ : staying) - 1; }

  // Copies `part` of `vector`, which lies in round i, into this rank's cell.
  Status put(uint32_t i, const Range& part, const void* vector) {
    return put_at(place(i, part), static_cast<const char*>(vector) + at(part), bytes(part));
  }
  Status put_at(const Place& where, const void* data, size_t bytes) {
    if (goes_ && bytes >= tried_from) return put_as_tried(where, data, bytes);
    return bytes > 0 ? team_.staged->put(where, where.at, data, bytes) : Status::good();
  }

  // Where rank r's cell holds it.
  Status get(int r, uint32_t i, const Range& part, const void** data) { return get_at(r, place(i, part), bytes(part), data); }
  Status get_at(int r, const Place& where, size_t bytes, const void** data) {
    return team_.staged->get(r, {}, where, where.at, bytes, nullptr, data);
  }
  // The same for who stores there: in this rank's cell; in that of a peer that expects it.
  char* in_cell(uint32_t i, const Range& part) {
    const Place where = place(i, part);
    return static_cast<char*>(team_.staged->place(where, where.at, bytes(part)));
  }
  char* in_cell_of(int r, uint32_t i, const Range& part) {
    const Place where = place(i, part);
    return static_cast<char*>(team_.staged->place_in(r, where, where.at, bytes(part)));
  }

  // All of round i for everybody to read.
  Status stage(uint32_t i, const void* vector) {
    STRETTO_TRY(free(i));
    STRETTO_TRY(put(i, range(i), vector));
    filled(i);
    return Status::good();
  }

  void filled(uint32_t i) {
    if (i == 0) label_at(team_.rank).store(label_, std::memory_order_relaxed);
    team_.waiter.announce(team_.mine().filled, number(i));
  }
  void reduced(uint32_t i) { team_.waiter.announce(team_.mine().reduced, number(i)); }
  void drained(uint32_t i) { team_.waiter.announce(team_.mine().drained, number(i)); }
  void drained_all() { team_.waiter.announce(team_.mine().drained, first_ + numbers_ - 1); }  // for a rank that reads nothing

  // At the end of a rank that stages little: fetches the lines of as many rounds more, while there is time. Programs repeat
  // themselves, so the next vector will be as long as this one. AMD's CPUs get them sooner when they are stored to (Zen 5, bcast
  // of 16 KiB: 0.54 us instead of 0.84).
  void fetch_next();

  // Of ranks that stage and drain in turn, and so stage at most `lag` rounds before they drain the first: that one has filled a
  // round says what it has drained.
  Status wait_filled(int r, uint32_t i) {
    STRETTO_TRY(team_.waiter.until(filled_by(r), number(i), r));
    team_.seen_drained(r, number(i) - lag);
    return i == 0 ? compare(r) : Status::good();
  }
  // That rank r, which has filled round 0, lays the same vector; unless it is several ahead.
  Status compare(int r) const {
    const uint64_t theirs = label_at(r).load(std::memory_order_relaxed);
    if (label_ == 0 || theirs == label_ || uint32_t(theirs >> 32) != uint32_t(label_ >> 32)) return Status::good();
    return calls_differ(r);
  }
  bool is_filled(int r, uint32_t i) { return reached(filled_by(r).value.load(std::memory_order_acquire), number(i)); }
  Signal& filled_by(int r) { return team_.board(r).filled; }
  Status wait_reduced(int r, uint32_t i) { return team_.waiter.until(team_.board(r).reduced, number(i), r); }

 private:
  static constexpr size_t tried_from = 2 << 10;
  enum Way { cached, streamed };
  static constexpr uint64_t worth = 3;  // as many times as long, since others then have to read from memory

  // Stores past the caches where that takes clearly less time by trial: of two last-level caches each may hold what stood there
  // before, and then stores that first fetch their lines take many times as long (Zen 4, 128 KiB: 50 us instead of 9).
  Status put_as_tried(const Place& where, const void* data, size_t bytes);

  // No rank has more rounds. (Those who sleep compare lower halves: these must change.)
  static constexpr uint64_t numbers_of_part = (uint64_t(1) << 32) + 64;

  static size_t part_bytes(const Team& team) { return most_held(team) / 2; }
  // What both kinds have in common; no room is larger than `most`.
  Rounds(Team& team, size_t element, size_t total, size_t per_round, int pieces, size_t most);

  std::atomic<uint64_t>& label_at(int r) const { return team_.board(r).filled_of[vector_ % RankBoard::vectors]; }

  uint64_t begin(uint32_t i) const { return begin_ + (i & turn_) * room_; }  // in bytes of the ring, counted on from turn to turn

  Place in_ring(uint64_t position) const {
    position &= ring_.bytes - 1;
    return {uint32_t(position >> cell_shift_) + staying, position & cell_mask_};
  }
  uint64_t unit() const;  // a vector begins at a multiple of it

  // The newest round that must be drained before round i is filled: it stood there a turn ago.
  uint64_t tenant(uint32_t i);

  Team& team_;
  size_t element_, total_, elements_;  // elements_: per round
  size_t grain_;                       // of slices
  uint32_t count_;
  int cell_shift_;
  size_t cell_mask_;
  int pieces_;
  uint64_t piece_, room_;
  Turns::Ring ring_;
  uint64_t first_ = 0, numbers_ = 0, begin_ = 0;
  uint32_t vector_ = 0;         // counted
  uint64_t label_ = 0;          // the number of the first round, and what vector it is of; 0: others may have another one
  uint32_t turn_ = UINT32_MAX;  // after so many rounds and one a rank's own begin anew
  uint64_t stayed_before_ = 0;  // the newest round that stayed
  bool goes_;                   // round the ring
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
