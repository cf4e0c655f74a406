#include "collective/patterns/rounds.hpp"

namespace stretto::collective {

Range part_of(const Range& range, int i, int parts, size_t grain) {
  size_t grains = (range.size() + grain - 1) / grain;
  auto edge = [&](int k) { return std::min(range.begin + grains * size_t(k) / size_t(parts) * grain, range.end); };
  return {edge(i), edge(i + 1)};
}

Rounds::Rounds(Team& team, const Request& request, size_t per_round, size_t room)
    : team_(team),
      element_(request.element),
      total_(request.count),
      grain_(cache_line % request.element == 0 ? cache_line / request.element : 1),
      room_(std::max(room, request.element)) {
  size_t cell = team.staged->cell_bytes();
  if (per_round == 0 || per_round > cell) per_round = cell;
  elements_ = std::max<size_t>(per_round / element_, 1);
  count_ = uint32_t((total_ + elements_ - 1) / elements_);
  const uint32_t cells = team.staged->cells();
  if (room > 0 && count_ > cells) parts_ = uint32_t(std::max<size_t>(cell / room_, 1));
  if (parts_ > 1) lag_ = parts_ * cells - 1;
  const size_t layout = parts_ > 1 ? room_ : 0;
  first_ = team.rounds + 1;
  if (count_ > 0 && layout != team.round_layout) team.round_layout = layout, team.rounds_moved = team.rounds;
  team.rounds += count_;
}

}  // namespace stretto::collective
