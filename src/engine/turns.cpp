#include "engine/turns.hpp"

#include "base/clock.hpp"
#include "trace/recorder.hpp"

namespace stretto::engine {

// In the order a b b a, so that what changes steadily meets both alike.
void Turns::change() {
  const uint64_t now = ticks(), in_collectives = trace::collective_ticks();
  if (turns_ > not_counted) count(now - begin_, in_collectives - collectives_at_begin_);
  begin_ = now;
  collectives_at_begin_ = in_collectives;
  is_of_mpi_ = turns_ % 4 == 1 || turns_ % 4 == 2;
  ++turns_;
  left_ = cell_.calls_each;
}

void Turns::count(uint64_t spent, uint64_t in_collectives) {
  const int whose = is_of_mpi_ ? 0 : 1;
  ++cell_.turns[whose];
  cell_.ticks[whose] += spent;
  cell_.squares[whose] += (spent >> 10) * (spent >> 10);
  cell_.collective_ticks[whose] += in_collectives;
  trace::tell_turns(cell_);
}

}  // namespace stretto::engine
