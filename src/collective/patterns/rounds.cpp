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
      grain_(line_grain(request.element)),
      room_(std::max(room, request.element)) {
  size_t cell = team.staged->cell_bytes();
  if (per_round == 0 || per_round > cell) per_round = cell;
  elements_ = std::max<size_t>(per_round / element_, 1);
  count_ = uint32_t((total_ + elements_ - 1) / elements_);
  const uint32_t cells = team.staged->cells();
  if (room > 0 && count_ > cells) parts_ = uint32_t(std::clamp<size_t>(cell / room_, 1, std::max(place_ring / cells, 1u)));
  if (deep()) lag_ = parts_ * cells - 1;
  first_ = team.rounds + 1;
  if (count_ > 0 && team.round_layout != (deep() ? room_ : 0)) lay_out();
  team.rounds += count_;
}

// Whatever stood in the cells until now must be drained before any of them is filled.
void Rounds::lay_out() {
  team_.round_layout = deep() ? room_ : 0;
  team_.rounds_moved = team_.rounds;
  for (uint64_t& tenant : team_.tenants) tenant = team_.rounds;
}

// What has been used last is still in the caches: while peers keep up, rounds go round in as many places as there are cells.
void Rounds::choose_place(uint32_t i) {
  if (!deep()) return;
  const uint32_t cells = team_.staged->cells(), places = parts_ * cells;
  const uint64_t close = before(i, cells), drained = team_.not_drained(close) < 0 ? close : last_tenant(i);
  uint32_t best = places;
  for (uint32_t p = 0; p < places; ++p)
    if (reached(drained, team_.tenants[p]) && (best == places || !reached(team_.tenants[best], team_.tenants[p]))) best = p;
  team_.tenants[best] = number(i);
  team_.mine().places[number(i) % place_ring] = uint8_t(best);
}

void Rounds::linger(uint32_t i) {
  if (!deep() || goes_ahead_) return;
  const auto close = [&] { return team_.not_drained(before(i, team_.staged->cells())) < 0; };
  goes_ahead_ = !close() && (team_.arrivals.likely_last() != ArrivalWatch::nobody || !team_.waiter.linger(close));
}

}  // namespace stretto::collective
