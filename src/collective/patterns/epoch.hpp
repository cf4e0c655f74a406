// One epoch as one rank sees it. See patterns/claims.hpp for the protocol.
#pragma once
#include <climits>

#include "collective/patterns/claims.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

class Epoch {
 public:
  static constexpr int absent = INT_MAX;

  // The team's next epoch, over `slices` slices; `round`: the number of the round that it is, by whose being drained ranks tell
  // that they have left it; 0 where nobody leaves before all have arrived. All equal on all ranks.
  Status begin(Team& team, uint32_t slices, uint64_t round = 0);
  uint32_t slices() const { return slices_; }

  // Takes this rank's ticket. Its contribution is to be read from now on.
  void arrive(ArrivalFacts facts);

  // Reads who has arrived meanwhile.
  void look();
  int level() const { return level_; }
  bool all_here() const { return level_ == team_->size; }
  const int* tickets() const { return ticket_; }  // by rank; `absent`
  int arrived(int ticket) const { return order_[ticket]; }
  const ArrivalFacts& facts(int rank) const { return facts_[rank]; }
  // A rank that has not arrived; -1 when all have.
  int missing() const;

  SliceState state(uint32_t i) const { return SliceState::of(word(i).load(std::memory_order_seq_cst), number_); }
  bool is_final(const SliceState& s) const { return int(s.level) == team_->size && s.owner == 0 && !s.stopped; }

  // Whether the slice, last seen in state `seen`, is this rank's to work on now.
  bool claim(uint32_t i, const SliceState& seen);
  // Gives it back with the first `level` arrivals combined.
  void release(uint32_t i, const SliceState& seen, int level);
  // This rank cannot do its part of any slice: each goes no further than it is, or than its owner brings it now.
  void stop_all();
  // Every slice is finished or stopped: nobody claims any more, and what was stored before is visible.
  bool complete() const;

  // For algorithms that only use the words: sets word i, once per epoch, and lets all look.
  void post(uint32_t i, uint32_t level);

 private:
  std::atomic<uint64_t>& word(uint32_t i) const { return board_->slices[i].value; }
  void stop(uint32_t i);
  void ended();

  Team* team_ = nullptr;
  EpochBoard* board_ = nullptr;
  Arrival* arrivals_ = nullptr;
  uint64_t number_ = 0, first_ticket_ = 0, last_finished_ = 0;
  uint32_t slices_ = 0;
  int level_ = 0;
  bool stopped_all_ = false;
  int order_[max_team], ticket_[max_team];
  ArrivalFacts facts_[max_team];
};

}  // namespace stretto::collective
