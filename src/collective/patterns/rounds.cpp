#include "collective/patterns/rounds.hpp"

namespace stretto::collective {

Range part_of(const Range& range, int i, int parts, size_t grain) {
  size_t grains = (range.size() + grain - 1) / grain;
  auto edge = [&](int k) { return std::min(range.begin + grains * size_t(k) / size_t(parts) * grain, range.end); };
  return {edge(i), edge(i + 1)};
}

Rounds::Rounds(Team& team, const Request& request, size_t per_round)
    : team_(team),
      element_(request.element),
      total_(request.count),
      grain_(cache_line % request.element == 0 ? cache_line / request.element : 1) {
  size_t cell = team.staged->cell_bytes();
  if (per_round == 0 || per_round > cell) per_round = cell;
  elements_ = std::max<size_t>(per_round / element_, 1);
  count_ = uint32_t((total_ + elements_ - 1) / elements_);
  first_ = team.rounds + 1;
  team.rounds += count_;
}

}  // namespace stretto::collective
