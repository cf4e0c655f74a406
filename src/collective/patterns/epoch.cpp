#include "collective/patterns/epoch.hpp"

#include "base/clock.hpp"

namespace stretto::collective {

Status Epoch::begin(const Request& request, uint32_t slices, uint64_t round) {
  note_ = note_of(request);
  alike_ = {};
  slices_ = slices;
  number_ = ++team_.epochs;
  const uint32_t place = uint32_t(number_ % epoch_ring);
  // The epoch that had this place has been left by all: by its own round, or else, since all had come to it, by that of the next.
  // (Where that has none either, all have come to the next.)
  const uint64_t own_round = team_.epoch_rounds[place], next_round = team_.epoch_rounds[(place + 1) % epoch_ring];
  const uint64_t left = own_round != 0 ? own_round : next_round;
  if (left != 0) STRETTO_TRY(team_.all_drained(left));
  team_.epoch_rounds[place] = round;
  board_ = &team_.presence->epochs[place];
  arrivals_ = team_.presence->arrivals(place, team_.size);
  words_ = team_.presence->words(place, team_.size);
  first_ticket_ = team_.tickets_taken[place];
  team_.tickets_taken[place] += uint64_t(team_.size);
  last_finished_ = team_.slices_finished[place] += slices;
  level_ = 0;
  ended_ = 0;
  stopped_all_ = false;
  for (int r = 0; r < team_.size; ++r) ticket_[r] = absent;
  return Status::good();
}

int Epoch::arrive(ArrivalFacts facts) {
  facts.ticks = ticks();
  const uint64_t ticket = board_->tickets.signal.value.fetch_add(1, std::memory_order_seq_cst) - first_ticket_;
  Arrival& mine = arrivals_[ticket];
  mine.facts = facts;
  mine.tag.note = note_;
  mine.tag.value.store(number_ << rank_bits | uint64_t(team_.rank), std::memory_order_seq_cst);
  team_.waiter.notify(mine.tag);
  return int(ticket);
}

void Epoch::look() {
  for (; level_ < team_.size; ++level_) {
    const Arrival& next = arrivals_[level_];
    const uint64_t tag = next.tag.value.load(std::memory_order_seq_cst);
    if (tag >> rank_bits != number_) return;
    const int rank = int(tag & rank_mask);
    if (next.tag.note != note_) {
      alike_ = calls_differ(rank);
      return;
    }
    order_[level_] = rank;
    ticket_[rank] = level_;
    facts_[rank] = next.facts;
  }
}

Status Epoch::next_arrival() {
  if (!all_here()) STRETTO_TRY(team_.waiter.until(arrivals_[level_].tag, number_ << rank_bits, any_rank));
  look();
  return alike_;
}

bool Epoch::change(uint32_t i, uint64_t& from, const SliceState& to) {
  return word(i).value.compare_exchange_strong(from, to.word(), std::memory_order_seq_cst);
}

bool Epoch::claim(uint32_t i, const SliceState& seen) {
  if (seen.owner != 0 || seen.stopped) return false;
  SliceState mine = seen;
  mine.owner = uint32_t(team_.rank) + 1;
  uint64_t old = word(i).value.load(std::memory_order_relaxed);
  return SliceState::of(old, number_).word() == seen.word() && change(i, old, mine);
}

void Epoch::release(uint32_t i, const SliceState& seen, int level) {
  SliceState mine = seen, done = seen;
  mine.owner = uint32_t(team_.rank) + 1;
  done.level = uint32_t(level);
  uint64_t old = mine.word();
  if (!change(i, old, done)) {  // all that others do to it is to stop it
    done.stopped = level < team_.size;
    word(i).value.store(done.word(), std::memory_order_seq_cst);
  }
  team_.waiter.notify(word(i));
  if (done.stopped || level == team_.size) ++ended_;
}

void Epoch::stop(uint32_t i) {
  for (uint64_t old = word(i).value.load(std::memory_order_seq_cst);;) {
    SliceState s = SliceState::of(old, number_);
    if (s.stopped || is_final(s)) return;
    const bool free = s.owner == 0;
    s.stopped = true;
    if (!change(i, old, s)) continue;
    if (free) ++ended_;
    return;
  }
}

void Epoch::stop_all() {
  if (stopped_all_) return;
  stopped_all_ = true;
  for (uint32_t i = 0; i < slices_; ++i) stop(i);
}

void Epoch::tell_ended() {
  if (ended_ > 0) team_.waiter.add(board_->finished.signal, ended_);
  ended_ = 0;
}

void Epoch::post(uint32_t i, uint32_t level) {
  word(i).value.store(SliceState{number_, level}.word(), std::memory_order_seq_cst);
  team_.waiter.notify(word(i));
}

}  // namespace stretto::collective
