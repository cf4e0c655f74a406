#include "collective/arrival_watch.hpp"

#include <algorithm>

#include "trace/recorder.hpp"

namespace stretto::collective {
namespace {

// The record may be read at any time; this rank alone writes the cell.
void put(uint64_t& word, uint64_t value) {
  std::atomic_ref<uint64_t>(word).store(value, std::memory_order_relaxed);
}

}  // namespace

void ArrivalWatch::compare_until(uint64_t end) {
  while (compared_ < end && (compare(compared_) || compared_ + furthest < noted_)) ++compared_;
}

// Times of one node compare: the counter runs alike on all its CPUs. False: a stamp is missing.
bool ArrivalWatch::compare(uint64_t number) {
  uint64_t first = UINT64_MAX, last = 0, own = 0;
  int who = nobody;
  for (int r = 0; r < size_; ++r) {
    const uint64_t stamp = boards_[r].arrivals.stamps[number % arrival_ring].load(std::memory_order_relaxed);
    if ((stamp & pass_mask) != pass_of(number)) return false;
    const uint64_t ticks = stamp & ~pass_mask;
    if (r == rank_) own = ticks;
    if (ticks >= last) who = r;
    first = std::min(first, ticks);
    last = std::max(last, ticks);
  }
  count(first, last, own, who);
  return true;
}

void ArrivalWatch::count(uint64_t first, uint64_t last, uint64_t own, int who) {
  if (identity_ != 0) {
    if (trace::ArrivalCell* cell = trace::arrival_cell(identity_, uint32_t(rank_), uint32_t(size_))) cell_ = cell;
    identity_ = 0;  // asked once
  }
  trace::ArrivalCell& cell = *cell_;
  const bool repeated = who == last_;
  put(cell.spread_ticks, cell.spread_ticks + last - first);
  put(cell.most_ticks, std::max(cell.most_ticks, last - first));
  put(cell.behind_ticks, cell.behind_ticks + own - first);
  put(cell.last, cell.last + (who == rank_));
  put(cell.repeated, cell.repeated + repeated);
  put(cell.calls, cell.calls + 1);
  recent_hits_ = recent_hits_ - recent_hits_ / 16 + (repeated ? whole / 16 : 0);
  last_ = who;
}

}  // namespace stretto::collective
