// One epoch as one rank sees it. See patterns/claims.hpp for the protocol.
#pragma once
#include <climits>

#include "collective/patterns/claims.hpp"
#include "collective/patterns/exchange.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

class Epoch {
 public:
  static constexpr int absent = INT_MAX;

  explicit Epoch(Team& team) : team_(team), order_(team.lists), ticket_(team.lists), facts_(team.lists) {}

  // The team's next epoch, over `slices` slices; `round`: the number of the round that it is, by whose being drained ranks tell
  // that they have left it; 0 where nobody leaves before all have arrived. All equal on all ranks.
  Status begin(const Request& request, uint32_t slices, uint64_t round = 0);
  uint32_t slices() const { return slices_; }

  // Takes this rank's ticket, and returns it. Its contribution is to be read from now on.
  int arrive(ArrivalFacts facts);

  // Reads who has arrived meanwhile; no further than to who has come to another call, as next_arrival() then says.
  void look();
  int level() const { return level_; }
  bool all_here() const { return level_ == team_.size; }
  const int* tickets() const { return ticket_; }  // by rank; `absent`
  int arrived(int ticket) const { return order_[ticket]; }
  const ArrivalFacts& facts(int rank) const { return facts_[rank]; }
  // Waits until somebody has arrived whom look() has not seen, if all have not; or looks out for one for a short while.
  Status next_arrival();
  bool glance(uint32_t looks) const {
    return all_here() || team_.waiter.glance(arrivals_[level_].tag, number_ << rank_bits, looks);
  }

  SliceState state(uint32_t i) const { return SliceState::of(word(i).value.load(std::memory_order_seq_cst), number_); }
  bool is_final(const SliceState& s) const { return int(s.level) == team_.size && s.owner == 0 && !s.stopped; }

  // Waits until the slice has gone beyond `level` and is free; `writer` is to bring it there.
  Status beyond(uint32_t i, uint32_t level, int writer) {
    return team_.waiter.until(word(i), SliceState{number_, level + 1}.word(), writer);
  }

  // Whether the slice, last seen in state `seen`, is this rank's to work on now.
  bool claim(uint32_t i, const SliceState& seen);
  // Gives it back with the first `level` arrivals combined.
  void release(uint32_t i, const SliceState& seen, int level);
  // This rank cannot do its part of any slice: each goes no further than it is, or than its owner brings it now.
  void stop_all();
  // Every slice is finished or stopped: nobody claims any more, and what was stored before is visible.
  bool complete() const { return board_->finished.signal.value.load(std::memory_order_acquire) == last_finished_; }
  Status until_complete() { return team_.waiter.until(board_->finished.signal, last_finished_, any_rank); }
  // Tells how many slices this rank has brought to their end since it last told. To be called before it waits.
  void tell_ended();

  // For algorithms that only use the words: brings word i, which nobody claims, to `level`.
  void post(uint32_t i, uint32_t level);

 private:
  Signal& word(uint32_t i) const { return words_[i].signal; }
  bool change(uint32_t i, uint64_t& from, const SliceState& to);
  void stop(uint32_t i);

  Team& team_;
  EpochBoard* board_ = nullptr;
  Arrival* arrivals_ = nullptr;
  Word* words_ = nullptr;
  uint64_t number_ = 0, first_ticket_ = 0, last_finished_ = 0;
  uint32_t slices_ = 0, ended_ = 0;
  uint32_t note_ = 0;  // what all must have come for
  int level_ = 0;
  Status alike_;
  bool stopped_all_ = false;
  PerRank<int> order_, ticket_;
  PerRank<ArrivalFacts> facts_;
};

}  // namespace stretto::collective
