// On which CPUs the ranks of a team stand, where they have to share them.
//
// The kernel leaves three ranks that yield to one another on one CPU, and the fourth alone on another, for a tenth of a second
// and more: to it all of them are at work. What all wait for then takes twice as long.
#pragma once
#include <cstdint>

#include "collective/board.hpp"

namespace stretto::collective {

class Mates {
 public:
  // Of a team of all ranks of the node, which may all use the same CPUs.
  void sit(Board* board, int rank, int size) {
    if (size <= Board::most_seated) board_ = board, rank_ = rank, size_ = size;
  }

  // This rank, which waits, tells where it stands. Now and then: where two ranks more stand there than on another CPU that it may
  // use, one of them moves to that one: they have turns of `period_ns`, so that it may be one that seldom waits. What it may use
  // does not change. None moves where several threads of it wait.
  static constexpr uint64_t period_ns = 5'000'000;
  void tell(uint64_t now);

 private:
  int cpu_of(int r) const { return int(board_->cpus[r].load(std::memory_order_relaxed)) - 1; }
  void spread(uint64_t turn);

  Board* board_ = nullptr;
  int rank_ = 0, size_ = 0, cpu_ = -1;
  uint64_t spread_at_ = 0;
};

}  // namespace stretto::collective
