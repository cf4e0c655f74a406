#include "collective/patterns/resume.hpp"

namespace stretto::collective {

Status resume_staged(Team& team, const Request& request, Consumers consumers, const Stopped& stopped) {
  const bool consumer = consumes(consumers, request, team.rank);
  Merge merge(team, request, stopped.epoch);
  for (int r = 0; r < team.size; ++r) merge.place(r, nullptr, nullptr, stopped.room[r]);
  const char* own = merge.holds_partial(team.rank, stopped.level) ? stopped.partial : static_cast<const char*>(request.input);
  Request part = request;
  part.count = stopped.range.size();
  Rounds rounds(team, part);
  if (!consumer) rounds.drained_all();
  for (uint32_t i = 0; i < rounds.count(); ++i) {
    const Range range = rounds.range(i);
    const size_t begin = range.begin * request.element, bytes = range.size() * request.element;
    const size_t at = stopped.range.begin * request.element + begin;
    STRETTO_TRY(rounds.free(i));
    STRETTO_TRY(rounds.put_at(rounds.place(i), own + at, bytes));
    rounds.filled(i);
    if (!consumer) continue;
    for (int r = 0; r < team.size; ++r) {
      const void* data;
      STRETTO_TRY(rounds.wait_filled(r, i));
      STRETTO_TRY(rounds.get_at(r, rounds.place(i), bytes, &data));
      merge.place(r, data, const_cast<void*>(data), stopped.room[r]);
    }
    merge.finish(stopped.level, static_cast<char*>(request.output) + at, 0, range.size());
    rounds.drained(i);
  }
  return Status::good();
}

}  // namespace stretto::collective
