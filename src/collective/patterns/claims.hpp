// Claims: which rank works on which slice of a vector is decided by who is there.
//
// An epoch is one passage of a vector (a call, or a round of one). Each rank takes a ticket when it arrives and enters itself in
// the list of arrivals, in the order of tickets. Each slice has one word that says how many arrivals are combined in it and who
// works on it; it is claimed, extended and released by compare-and-swap, so one rank at a time touches a slice. Words carry the
// number of their epoch: what stands there from an earlier one means "nothing done yet", and nothing is ever reset. Epochs take
// four places in turn; an algorithm arrives in one only when everybody has left the fourth before it.
//
// Nobody waits for news in general. Whoever finds nothing to do waits for the next arrival, for one slice's word to reach a
// state, or for the count of finished slices: each is a number that only grows, and says that it has grown to those who sleep on
// it. Who arrives while a slice is worked on finds it claimed and leaves it; whoever releases it looks for arrivals afterwards.
// Words and arrivals are sequentially consistent, so one of the two sees the other, and no slice stays behind.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collective/board.hpp"
#include "transport/transport.hpp"

namespace stretto::collective {

inline constexpr uint32_t epoch_ring = 4;
inline constexpr uint32_t most_slices = 128;  // of a vector

// So many bits hold a rank or a number of ranks.
inline constexpr uint32_t rank_bits = 10;
inline constexpr uint64_t rank_mask = (1 << rank_bits) - 1;
static_assert(max_team < 1 << rank_bits);

// The word of a slice.
struct SliceState {
  uint64_t epoch = 0;    // its number
  uint32_t level = 0;    // the first so many arrivals are combined
  uint32_t owner = 0;    // 1 + the rank at work; 0: nobody
  bool stopped = false;  // a rank cannot reach what it takes: nobody claims it any more

  static SliceState of(uint64_t word, uint64_t epoch) {
    SliceState s{word >> (2 * rank_bits + 1), uint32_t(word >> rank_bits & rank_mask), uint32_t(word & rank_mask),
                 (word >> 2 * rank_bits & 1) != 0};
    return s.epoch == epoch ? s : SliceState{epoch};
  }
  uint64_t word() const {
    return epoch << (2 * rank_bits + 1) | uint64_t(stopped) << 2 * rank_bits | uint64_t(level) << rank_bits | owner;
  }
};

// What a rank tells on arrival.
struct ArrivalFacts {
  transport::Window input, result;  // 0: none, or none that can be reached
  uint64_t room = 0;                // so many bytes of `result` may hold what is not finished
  uint64_t ticks = 0;               // when it arrived
};

struct alignas(cache_line) Arrival {
  Signal tag;  // epoch << rank_bits | rank
  ArrivalFacts facts;
};
static_assert(sizeof(Arrival) == cache_line);

struct alignas(cache_line) Word {
  Signal signal;
};

struct EpochBoard {
  Word tickets;   // arrivals in all epochs of this place
  Word finished;  // slices that were finished or stopped in all epochs of this place
};

// In memory that starts zeroed. Behind it stand the arrivals of each place's epoch, then the words of its slices.
struct PresenceBoard {
  alignas(cache_line) Signal tickets;  // of last-ticket combining
  alignas(cache_line) Slot result;
  EpochBoard epochs[epoch_ring];

  // Some algorithms use one for each rank.
  static size_t words_of(int size) { return std::max<size_t>(most_slices, size_t(size)); }
  static size_t bytes(int size) {
    return sizeof(PresenceBoard) + epoch_ring * (size_t(size) * sizeof(Arrival) + words_of(size) * sizeof(Word));
  }
  Arrival* arrivals(uint32_t place, int size) { return reinterpret_cast<Arrival*>(this + 1) + size_t(place) * size_t(size); }
  Word* words(uint32_t place, int size) { return reinterpret_cast<Word*>(arrivals(epoch_ring, size)) + place * words_of(size); }
};

}  // namespace stretto::collective
