// A team: the ranks of one communicator on one node, as one of them sees it. All that an algorithm works with.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>

#include "base/status.hpp"
#include "collective/arrival_watch.hpp"
#include "collective/board.hpp"
#include "collective/domains.hpp"
#include "collective/lists.hpp"
#include "collective/patterns/claims.hpp"
#include "collective/request.hpp"
#include "collective/trials.hpp"
#include "collective/waiter.hpp"
#include "kernels/kernels.hpp"
#include "transport/transport.hpp"

namespace stretto::collective {

// Memory of this rank alone that algorithms work in; grows to what was asked for and stays.
class Scratch {
 public:
  ~Scratch() { free(data_); }
  void* get(size_t bytes) {  // 64-byte aligned; null when there is no memory
    if (bytes <= bytes_) return data_;
    free(data_);
    bytes_ = 0;
    data_ = aligned_alloc(cache_line, round_up(bytes, cache_line));
    if (data_ != nullptr) bytes_ = bytes;
    return data_;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// What has gone round the staging cells of each rank lately (patterns/rounds.hpp): the same on all ranks.
class Turns {
 public:
  // Rounds from number `first` on, each in `room` bytes, from byte `begin` of all that went round on; each takes `numbers`.
  struct Vector {
    uint64_t first, begin, room, rounds, numbers;
  };
  uint64_t next(uint64_t room) const;
  void take(const Vector& vector);

  // The ring in which the next vector goes, of which it needs so many bytes and there are `whole`: no larger than pays, as memory
  // that is touched for the first time costs as much as some ten rounds in lines that others hold. What went in a smaller one,
  // before `grown_at`, is overwritten in any place of this.
  struct Ring {
    uint64_t bytes = 0, grown_at = 0;
  };
  Ring ring(uint64_t needed, uint64_t whole);

  // The newest round that begins before `position`; of what is long past, possibly a newer one. Positions only grow.
  uint64_t newest_before(uint64_t position);

 private:
  static constexpr uint64_t most = 64;
  Vector vectors_[most];
  uint64_t taken_ = 0, oldest_ = 0;
  Ring ring_;
};

class Team;
using Way = Status (*)(Team&, const Request&);  // to do a call

class Team {
 public:
  // `board` is zeroed before the first rank's team is made, and shared by all.
  Team(int own_rank, int ranks, Board* shared_board, const Waiter& how_to_wait)
      : rank(own_rank),
        size(ranks),
        waiter(how_to_wait),
        arrivals(shared_board->ranks, own_rank, ranks),
        lists(ranks),
        board_(shared_board),
        known_done_(new (std::nothrow) uint64_t[ranks]()),
        known_drained_(new (std::nothrow) uint64_t[ranks]()),
        pointers_(new (std::nothrow) const void*[ranks]()) {}

  bool usable() const { return lists.usable() && known_done_ && known_drained_ && pointers_; }

  const int rank;
  const int size;
  Waiter waiter;
  ArrivalWatch arrivals;
  Lists lists;
  Scratch scratch;
  std::unique_ptr<transport::Transport> staged;  // null until the communicator has staging cells
  PresenceBoard* presence = nullptr;             // comes with the staging cells
  std::unique_ptr<transport::Transport> direct;  // null where peers' memory cannot be reached
  Way unmapped = nullptr;  // what direct forms leave a call to where no buffer is mapped; null: then they copy

  RankBoard& board(int r) { return board_->ranks[r]; }
  RankBoard& mine() { return board_->ranks[rank]; }
  Board& shared() { return *board_; }
  const void** pointers() { return pointers_.get(); }  // room for one pointer per rank

  Domains domains;         // where its ranks stand
  int readers = 0;         // most ranks that read one buffer at a time by copying; 0: any number
  bool any_order = false;  // reductions may combine by domain first, where that differs from the order by rank

  // How results are stored where each rank's buffers, what it gives and what it gets, have so many bytes. From stream_from on
  // they go past the caches: they would not stay there, and fetching their lines first is waste.
  size_t stream_from = SIZE_MAX;
  kernels::Store store_of(size_t bytes) const { return bytes >= stream_from ? kernels::Store::stream : kernels::Store::cached; }

  // Exchanges, meetings and rounds so far: the same on all ranks between two collectives.
  uint64_t exchanges = 0;
  uint64_t meetings = 0;
  uint64_t rounds = 0;
  Turns turns;
  uint32_t vectors = 0;         // that were labelled
  uint64_t rounds_stayed = 0;   // the newest that did not
  uint64_t rounds_swapped = 0;  // the newest whose lines have changed hands by swapping (patterns/shipment_pair.cpp)
  uint64_t swapped = 0;         // how many have
  uint8_t rings_warm = 0;       // Rounds::warm_up()
  uint64_t parts = 0;           // of the ring that have been taken for a call

  // Epochs so far, and by their place what was taken and finished in them: likewise (patterns/epoch.hpp).
  uint64_t epochs = 0;
  uint64_t tickets_taken[epoch_ring] = {}, slices_finished[epoch_ring] = {};
  uint64_t epoch_rounds[epoch_ring] = {};        // the round that was each epoch; 0: none
  uint64_t tickets = 0, domain_tickets[2] = {};  // calls of last-ticket combining, of that in two levels

  // Reductions for all (allreduce/adaptive.cpp) and for one (reduce/adaptive.cpp).
  Trials<3> for_all, reductions;

  // One of two ways (patterns/by_trial.hpp): other collectives through cells or by direct access; of reductions, direct forms.
  static constexpr Kind with_two_ways[] = {
      Kind::bcast,     Kind::reduce,   Kind::allreduce,  Kind::gather,         Kind::scatter,
      Kind::allgather, Kind::alltoall, Kind::allgatherv, Kind::reduce_scatter, Kind::reduce_scatter_block};
  Trials<2>& either_of(Kind kind) { return either_[std::find(with_two_ways, std::end(with_two_ways) - 1, kind) - with_two_ways]; }

  // Of two ranks: pieces that one gives (patterns/handover.hpp), and that both give (patterns/shipment_pair.cpp).
  Trials<2> handovers;
  Trials<3> swaps[2];

  // How this rank stores to its cells (patterns/rounds.hpp). Nobody else needs to know.
  Trials<2> puts;

  // Messages are staged in pieces that are smaller than a first-level cache, where readers get them from there as soon.
  bool fine_pieces = false;

  // Contributions are combined in the order of arrival where that is allowed, not along the fixed tree.
  bool arrival_order = false;

  // Waits until every rank has finished reading exchange (round) `number`. What a rank was last seen to have done is
  // remembered, so that its line is looked at only when needed.
  Status all_done(uint64_t number) { return all_reached(known_done_.get(), number, &RankBoard::done); }
  Status all_drained(uint64_t number) { return all_reached(known_drained_.get(), number, &RankBoard::drained); }
  // A rank that is not known to have drained round `number`; -1: all have. Waits for nobody.
  int not_drained(uint64_t number) {
    for (int r = 0; r < size; ++r) {
      if (r == rank || reached(known_drained_[r], number)) continue;
      known_drained_[r] = board(r).drained.value.load(std::memory_order_acquire);
      if (!reached(known_drained_[r], number)) return r;
    }
    return -1;
  }
  // Numbers are compared as far as half of all there are: who long had nothing to tell or to look at does both now and then.
  void tell_of_rounds() {
    for (Signal RankBoard::* line : {&RankBoard::filled, &RankBoard::reduced, &RankBoard::partial, &RankBoard::spread})
      waiter.announce(mine().*line, rounds);
    for (uint64_t* of : {&rounds_stayed, &rounds_swapped}) *of = no_older(*of);
    for (uint64_t& round : epoch_rounds) round = round == 0 ? 0 : no_older(round);
    for (int r = 0; r < size; ++r) known_drained_[r] = board(r).drained.value.load(std::memory_order_acquire);
  }
  // What all have drained since, brought near enough to be compared.
  uint64_t no_older(uint64_t round) const {
    constexpr uint64_t near = uint64_t(1) << 61;
    return rounds - round > near ? rounds - near : round;
  }
  void assume_reached(int r, uint64_t number) {
    known_done_[r] = known_drained_[r] = number;
  }  // for teams that start at a number
  void seen_done(int r, uint64_t number) {
    if (!reached(known_done_[r], number)) known_done_[r] = number;
  }
  void seen_drained(int r, uint64_t number) {
    if (!reached(known_drained_[r], number)) known_drained_[r] = number;
  }

 private:
  Status all_reached(uint64_t* known, uint64_t number, Signal RankBoard::* line) {
    for (int r = 0; r < size; ++r) {
      if (r == rank || reached(known[r], number)) continue;
      Signal& signal = board(r).*line;
      STRETTO_TRY(waiter.until(signal, number, r));
      known[r] = signal.value.load(std::memory_order_acquire);  // it may be further than was waited for
    }
    return Status::good();
  }

  Trials<2> either_[std::size(with_two_ways)];

  Board* board_;
  std::unique_ptr<uint64_t[]> known_done_, known_drained_;
  std::unique_ptr<const void*[]> pointers_;
};

}  // namespace stretto::collective
