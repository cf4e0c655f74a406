#include "collective/patterns/epoch.hpp"

#include "base/clock.hpp"

namespace stretto::collective {

Status Epoch::begin(Team& team, uint32_t slices, uint64_t round) {
  team_ = &team;
  slices_ = slices;
  number_ = ++team.epochs;
  const uint32_t place = uint32_t(number_ % epoch_ring);
  if (team.epoch_rounds[place] != 0) STRETTO_TRY(team.all_drained(team.epoch_rounds[place]));
  team.epoch_rounds[place] = round;
  board_ = &team.presence->epochs[place];
  arrivals_ = team.presence->arrivals + size_t(place) * size_t(team.size);
  first_ticket_ = team.tickets_taken[place];
  team.tickets_taken[place] += uint64_t(team.size);
  last_finished_ = team.slices_finished[place] += slices;
  level_ = 0;
  stopped_all_ = false;
  for (int r = 0; r < team.size; ++r) ticket_[r] = absent;
  return Status::good();
}

void Epoch::arrive(ArrivalFacts facts) {
  facts.ticks = ticks();
  const uint64_t ticket = board_->tickets.value.fetch_add(1, std::memory_order_seq_cst) - first_ticket_;
  Arrival& mine = arrivals_[ticket];
  mine.facts = facts;
  mine.tag.store(number_ << 8 | uint64_t(team_->rank), std::memory_order_seq_cst);
  team_->waiter.add(team_->presence->news);
}

void Epoch::look() {
  for (; level_ < team_->size; ++level_) {
    const Arrival& next = arrivals_[level_];
    const uint64_t tag = next.tag.load(std::memory_order_seq_cst);
    if (tag >> 8 != number_) return;
    const int rank = int(tag & 0xff);
    order_[level_] = rank;
    ticket_[rank] = level_;
    facts_[rank] = next.facts;
  }
}

int Epoch::missing() const {
  for (int r = 0; r < team_->size; ++r)
    if (ticket_[r] == absent) return r;
  return -1;
}

bool Epoch::claim(uint32_t i, const SliceState& seen) {
  if (seen.owner != 0 || seen.stopped) return false;
  SliceState mine = seen;
  mine.owner = uint32_t(team_->rank) + 1;
  uint64_t old = word(i).load(std::memory_order_relaxed);
  if (SliceState::of(old, number_).word() != seen.word()) return false;
  return word(i).compare_exchange_strong(old, mine.word(), std::memory_order_seq_cst);
}

void Epoch::release(uint32_t i, const SliceState& seen, int level) {
  SliceState mine = seen, done = seen;
  mine.owner = uint32_t(team_->rank) + 1;
  done.level = uint32_t(level);
  uint64_t old = mine.word();
  if (!word(i).compare_exchange_strong(old, done.word(), std::memory_order_seq_cst)) {  // all that others do to it is to stop it
    done.stopped = level < team_->size;
    word(i).store(done.word(), std::memory_order_seq_cst);
  }
  if (done.stopped || level == team_->size) ended();
}

void Epoch::stop(uint32_t i) {
  for (uint64_t old = word(i).load(std::memory_order_seq_cst);;) {
    SliceState s = SliceState::of(old, number_);
    if (s.stopped || is_final(s)) return;
    const bool free = s.owner == 0;
    s.stopped = true;
    if (!word(i).compare_exchange_weak(old, s.word(), std::memory_order_seq_cst)) continue;
    if (free) ended();
    return;
  }
}

void Epoch::stop_all() {
  if (stopped_all_) return;
  stopped_all_ = true;
  for (uint32_t i = 0; i < slices_; ++i) stop(i);
}

void Epoch::post(uint32_t i, uint32_t level) {
  word(i).store(SliceState{number_, level}.word(), std::memory_order_seq_cst);
  team_->waiter.add(team_->presence->news);
}

void Epoch::ended() {
  if (board_->finished.value.fetch_add(1, std::memory_order_seq_cst) + 1 == last_finished_)
    team_->waiter.add(team_->presence->news);
}

bool Epoch::complete() const {
  return board_->finished.value.load(std::memory_order_acquire) == last_finished_;
}

}  // namespace stretto::collective
