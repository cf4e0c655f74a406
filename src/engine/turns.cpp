#include "engine/turns.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "trace/recorder.hpp"

namespace stretto::engine {

// In the order a b b a, so that what changes steadily meets both alike.
void Turns::change() {
  const uint64_t now = ticks(), in_mpi = trace::mpi_ticks();
  if (begun_ > warming_up) {
    const auto shortened = [](uint64_t ticks) { return uint32_t(std::min<uint64_t>(ticks >> 10, UINT32_MAX)); };
    const trace::Turn ended{shortened(now - begin_), shortened(in_mpi - in_mpi_)};
    trace::tell_turn(this, begun_ - 1 - warming_up, calls_each_, size_, ended);
  }
  begin_ = now;
  in_mpi_ = in_mpi;
  is_of_mpi_ = begun_ % 4 == 1 || begun_ % 4 == 2;
  ++begun_;
  left_ = calls_each_;
}

}  // namespace stretto::engine
