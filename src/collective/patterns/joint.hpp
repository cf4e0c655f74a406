// Pieces that two ranks copy together: the root of a shipment from the back, the other rank from the front, until they meet.
#pragma once
#include <algorithm>
#include <atomic>

#include "base/clock.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// In what steps: few, as entering the kernel costs; small, so that both end at about the same time.
inline size_t joint_step(size_t bytes) {
  constexpr size_t page = 4 << 10, least = 2 * page, most = 16 * page;
  return std::clamp(round_up(bytes / 8, page), least, most);
}

// Steps of a piece that have been taken, in one word.
struct TakenSteps {
  static constexpr int half = 32;
  uint64_t word = 0;
  uint64_t front() const { return uint32_t(word); }
  uint64_t back() const { return word >> half; }
};

// The next of so many steps: from the front, or from the back. False: all are taken.
inline bool take_step(std::atomic_ref<uint64_t> taken, bool from_back, uint64_t steps, uint64_t* step) {
  TakenSteps seen{taken.load(std::memory_order_relaxed)}, next;
  do {
    if (seen.front() + seen.back() >= steps) return false;
    *step = from_back ? steps - 1 - seen.back() : seen.front();
    next.word = seen.word + (from_back ? uint64_t(1) << TakenSteps::half : 1);
  } while (!taken.compare_exchange_weak(seen.word, next.word, std::memory_order_relaxed));
  return true;
}

// Before anything is written to a rank that showed where it is at `posted_ns`: it may have died since, and its number be that of
// another process.
inline Status expect_alive_since(const Team& team, int r, uint64_t posted_ns) {
  constexpr uint64_t long_ago_ns = 100'000'000;  // within this no number comes to be another's
  return now_ns() - posted_ns <= long_ago_ns ? Status::good() : team.waiter.expect_alive(r);
}

// Copies a part of what rank r gives, or of what this one gives it; both know the window of the other. False: refused.
inline bool read_part(Team& team, int r, transport::Window window, size_t at, size_t bytes, char* to, kernels::Store store) {
  const void* data;
  if (!team.direct->get(r, window, {0, 0}, at, bytes, to, &data).ok()) return false;
  if (data != to) kernels::copy(to, data, bytes, store);
  return true;
}

}  // namespace stretto::collective
