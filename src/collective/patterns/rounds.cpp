#include "collective/patterns/rounds.hpp"

#include "base/clock.hpp"
#include "platform/shared_memory.hpp"

namespace stretto::collective {
namespace {

// A vector begins on a page of its own: what the CPU of a reader fetches ahead, behind the end of one vector, is then not the
// next one, which its writer is about to store to (2 KiB between two ranks: 0.3 us instead of 0.43).
constexpr uint64_t page = 4 << 10;
constexpr size_t own_page_from = 1 << 10;

constexpr uint64_t parts_untold = 1 << 16;

}  // namespace

Rounds::Rounds(Team& team, size_t element, size_t total, size_t per_round, int pieces, size_t most)
    : team_(team), element_(element), total_(total), grain_(line_grain(element)), pieces_(pieces) {
  cell_shift_ = std::countr_zero(team.staged->cell_bytes());
  cell_mask_ = team.staged->cell_bytes() - 1;
  if (per_round == 0 || per_round > most) per_round = most;
  elements_ = std::max<size_t>(per_round / element_, 1);
  count_ = uint32_t((total_ + elements_ - 1) / elements_);
  piece_ = std::min(elements_, std::max<size_t>(total_, 1)) * element_;
  if (round_up(piece_, cache_line) * size_t(pieces) <= most) piece_ = round_up(piece_, cache_line);
  room_ = std::bit_ceil(std::max<size_t>(piece_ * size_t(pieces), cache_line));
}

Rounds::Rounds(Team& team, const Request& request, size_t per_round, int pieces, Course course)
    : Rounds(team, request.element, request.count, per_round, pieces, team.staged->cell_bytes()) {
  const uint64_t most = most_held(team);
  goes_ = course == Course::any && at_least * room_ <= most;
  first_ = team.rounds + 1;
  numbers_ = count_;
  team.rounds += count_;
  if (count_ == 0) return;
  vector_ = ++team.vectors;
  label_ = first_ << 32 | note_of(request);
  if (goes_) {
    ring_ = team.turns.ring(std::max<uint64_t>(at_least, count_) * room_, most);
    begin_ = team.turns.next(unit());
    team.turns.take({first_, begin_, room_, count_, 1});
  } else {
    stayed_before_ = team.rounds_stayed;
    team.rounds_stayed = team.rounds;
  }
}

uint64_t Rounds::unit() const {
  return total_ * element_ < own_page_from ? room_ : std::max(room_, page);
}

void Rounds::fetch_next() {
  constexpr size_t most = 24 << 10;
  const size_t bytes = piece_ * size_t(pieces_);
  if (team_.fine_pieces || count_ * bytes > most || goes_past_caches(piece_)) return;
  const uint64_t next = goes_ ? team_.turns.next(unit()) : 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const Place where = goes_ ? in_ring(next + i * room_) : place(count_ + i);
    const void* lines = team_.staged->place(where, where.at, bytes);
    if (lines != nullptr) prefetch_for_write(lines, bytes);
  }
}

Status Rounds::put_as_tried(const Place& where, const void* data, size_t bytes) {
  auto choice = team_.puts.choose(bytes);
  // Nothing that goes to memory is so fast (some 6 ns a line), and trying it would slow down those who read it.
  constexpr float fast = 0.25;
  if (choice.timed && choice.way == streamed && choice.known <= fast) {
    team_.puts.leave_out(bytes, streamed);
    choice = {cached, false};
  }
  void* to = choice.way == streamed ? team_.staged->place(where, where.at, bytes) : nullptr;
  const uint64_t began = choice.timed ? ticks() : 0;
  if (to != nullptr)
    kernels::copy(to, data, bytes, kernels::Store::stream);
  else
    STRETTO_TRY(team_.staged->put(where, where.at, data, bytes));
  if (!choice.timed) return Status::good();
  const uint64_t took = ticks() - began;
  team_.puts.note(bytes, choice.way, choice.way == streamed ? worth * took : took);
  return Status::good();
}

Rounds::Part Rounds::take_part(Team& team) {
  if (++team.parts % parts_untold == 0) team.tell_of_rounds();
  const uint64_t bytes = part_bytes(team), all = most_held(team);
  const uint64_t grown_at = team.turns.ring(all, all).grown_at;
  const Part part{team.rounds + 1, team.turns.next(bytes), grown_at};
  team.turns.take({part.first, part.begin, bytes, 1, numbers_of_part});
  team.rounds += numbers_of_part;
  return part;
}

Rounds::Rounds(Team& team, const Part& part, size_t bytes, size_t per_round, int pieces)
    : Rounds(team, 1, bytes, per_round, pieces, most_in_part(team)) {
  goes_ = true;
  first_ = part.first;
  ring_ = {most_held(team), part.grown_at};
  numbers_ = numbers_of_part;
  begin_ = part.begin;
  turn_ = uint32_t(part_bytes(team) / room_) - 1;
}

uint64_t Rounds::tenant(uint32_t i) {
  if (goes_ && i > turn_) return number(i) - turn_ - 1;
  if (goes_) {
    const uint64_t turn_ago = begin(i) + room_ - ring_.bytes;
    return team_.turns.newest_before(int64_t(turn_ago - ring_.grown_at) < 0 ? ring_.grown_at : turn_ago);
  }
  uint64_t newest = number(i) - staying;
  if (i < staying && reached(newest, stayed_before_)) newest = stayed_before_;
  return reached(newest, team_.rounds_swapped) ? newest : team_.rounds_swapped;
}

void Rounds::warm_up(Team& team, bool anew) {
  enum : uint8_t { cold, own_warm, both_warm };
  if (team.rings_warm == both_warm && !anew) return;
  const size_t bytes = team.staged->cell_bytes();
  for (uint32_t c = staying; c < team.staged->cells(); ++c)
    for (const int r : {team.rank, 1 - team.rank}) {
      void* cell = r == team.rank ? team.staged->place({c, 0}, 0, bytes) : team.staged->place_in(r, {c, 0}, 0, bytes);
      if (cell == nullptr) continue;
      if (team.rings_warm == (r == team.rank ? cold : own_warm)) platform::populate_pages(cell, bytes);
      for (size_t at = 0; at < bytes; at += cache_line) __builtin_prefetch(static_cast<const char*>(cell) + at);
    }
  team.rings_warm = team.rings_warm == cold ? own_warm : both_warm;
}

// Bytes of the ring before the next room.
uint64_t Turns::next(uint64_t room) const {
  const Vector& last = vectors_[(taken_ - 1) % most];
  return taken_ == 0 ? 0 : (last.begin + last.rounds * last.room + room - 1) & -room;
}

Turns::Ring Turns::ring(uint64_t needed, uint64_t whole) {
  constexpr uint64_t least = 64 << 10, turns_to_grow = 8;
  const uint64_t position = next(1);
  uint64_t bytes = std::max({ring_.bytes, least, std::bit_ceil(std::min(needed, whole))});
  if (position - ring_.grown_at >= turns_to_grow * bytes) bytes *= 2;
  bytes = std::min(bytes, whole);
  if (bytes > ring_.bytes) ring_ = {bytes, position};
  return ring_;
}

void Turns::take(const Vector& vector) {
  vectors_[taken_++ % most] = vector;
  if (taken_ - oldest_ > most) ++oldest_;
}

uint64_t Turns::newest_before(uint64_t position) {
  while (oldest_ + 1 < taken_ && int64_t(vectors_[(oldest_ + 1) % most].begin - position) < 0) ++oldest_;
  const Vector& vector = vectors_[oldest_ % most];
  if (int64_t(vector.begin - position) >= 0) return vector.first - 1;
  const uint64_t rounds = (position - vector.begin + vector.room - 1) / vector.room;
  return vector.first + std::min<uint64_t>(rounds, vector.rounds) * vector.numbers - 1;
}

}  // namespace stretto::collective
