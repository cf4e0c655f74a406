#include "engine/turns.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace stretto::engine {

// In the order a b b a, so that what changes steadily meets both alike.
void Turns::change() {
  const uint64_t now = ticks();
  const trace::Totals totals = trace::totals();
  if (begun_ > warming_up) {
    const auto shortened = [](uint64_t ticks) { return uint32_t(std::min<uint64_t>(ticks >> 10, UINT32_MAX)); };
    const trace::Turn ended{shortened(now - begin_), shortened(totals.ticks - at_begin_.ticks), totals.bytes - at_begin_.bytes};
    trace::tell_turn(this, begun_ - 1 - warming_up, calls_each_, size_, ended);
  }
  begin_ = now;
  at_begin_ = totals;
  is_of_mpi_ = begun_ % 4 == 1 || begun_ % 4 == 2;
  ++begun_;
  left_ = calls_each_;
}

}  // namespace stretto::engine
