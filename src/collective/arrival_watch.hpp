// Who comes last, and by how much: watched on a communicator at next to no cost.
//
// Of some collectives, the same on all ranks and none of them left to MPI (so that nobody is far ahead), each rank leaves the
// time of its arrival on its board: one store. Every `block`-th time it reads what the others left a block ago and longer. What
// some have not come to yet is looked at again, until none can be so far behind; then it is not counted. Nobody waits.
//
// What is found is this rank's own view, and may differ from that of others by a few collectives. It is a hint: for reports, and
// for choices that each rank makes for itself. What ranks must choose alike does not depend on it.
#pragma once
#include <cstdint>

#include "collective/board.hpp"
#include "trace/record.hpp"

namespace stretto::collective {

class ArrivalWatch {
 public:
  static constexpr uint32_t block = 8;
  static constexpr uint32_t furthest = slot_ring + block;  // behind: what is compared; the others may be as far ahead
  static_assert(arrival_ring >= 2 * furthest + block);
  static constexpr int nobody = -1;

  // `boards`: of all `size` ranks.
  ArrivalWatch(RankBoard* boards, int rank, int size) : boards_(boards), rank_(rank), size_(size) {}
  // Under which number the communicator stands in the record; until then, and with 0, it does not.
  void record_as(uint64_t identity) { identity_ = identity; }

  // This rank came to the next collective that is compared at `ticks`.
  void note(uint64_t ticks) {
    boards_[rank_].arrivals.stamps[noted_ % arrival_ring].store(stamp(ticks, noted_), std::memory_order_relaxed);
    if (++noted_ % block == 0) compare_until(noted_ - block);
  }

  // Compares what is left, as far as the others have come. For the end.
  void close() { compare_until(noted_); }

  // The rank that is likely to come last again: it did so in three of four collectives lately. Else nobody.
  int likely_last() const { return recent_hits_ >= trusted ? last_ : nobody; }

  const trace::ArrivalCell& seen() const { return *cell_; }

 private:
  // Hits lately: a running mean over about 16 collectives, in 65536ths.
  static constexpr uint32_t whole = 1 << 16, trusted = whole / 4 * 3;
  // The lowest bits of a time give way to the number of the pass through the ring that it belongs to. None is 0, which
  // stands where nothing was stored yet.
  static constexpr uint64_t pass_mask = 63;
  static uint64_t pass_of(uint64_t number) { return number / arrival_ring % pass_mask + 1; }
  static uint64_t stamp(uint64_t ticks, uint64_t number) { return (ticks & ~pass_mask) | pass_of(number); }

  void compare_until(uint64_t end);
  bool compare(uint64_t number);
  void count(uint64_t first, uint64_t last, uint64_t own, int who);

  RankBoard* boards_;
  const int rank_, size_;
  uint64_t identity_ = 0;
  uint64_t noted_ = 0, compared_ = 0;
  int last_ = nobody;  // of the newest collective compared
  uint32_t recent_hits_ = 0;
  trace::ArrivalCell own_{};  // where there is no record
  trace::ArrivalCell* cell_ = &own_;
};

}  // namespace stretto::collective
