// One exchange: ranks post a small payload each, and read those of the ranks they need.
//
// The payload stands in the line that announces it, so a rank that waits for a peer has its data with one transfer of a cache
// line. Slots are used in turn; a rank may run ahead of a slow reader by the length of the ring, then waits for it. Reading a
// peer's exchange k proves that it has finished k-1, so where everybody reads everybody the check is free.
#pragma once
#include <cstddef>

#include "collective/team.hpp"

namespace stretto::collective {

class Exchange {
 public:
  explicit Exchange(Team& team) : team_(team), number_(++team.exchanges) {}

  uint64_t number() const { return number_; }

  // Own slot, once nobody reads its former payload any more; to be filled before post().
  Status claim(void** payload) {
    STRETTO_TRY(team_.all_done(number_ - slot_ring));
    *payload = slot(team_.rank).payload;
    return Status::good();
  }

  void post() { team_.waiter.announce(slot(team_.rank).ready, number_); }

  // The payload of rank r, once posted.
  Status read(int r, const void** payload) {
    Slot& theirs = slot(r);
    STRETTO_TRY(team_.waiter.until(theirs.ready, number_, r));
    team_.seen_done(r, number_ - 1);
    *payload = theirs.payload;
    return Status::good();
  }

  // This rank reads nobody's payload of this exchange any more. Where everybody has read everybody it need not be said: that they
  // will see this rank's next exchange says it well enough.
  void finish() { team_.waiter.announce(team_.mine().done, number_); }

  // Fetches the line of the next post() from its readers while there is time. It pays where nothing else is to be done in
  // between.
  void fetch_next() { prefetch_for_write(&team_.mine().slots[(number_ + 1) % slot_ring]); }

 private:
  Slot& slot(int r) { return team_.board(r).slots[number_ % slot_ring]; }

  Team& team_;
  const uint64_t number_;
};

// Everybody tells everybody: all[r] receives the T of rank r. Also a barrier.
template <typename T>
Status exchange_all(Team& team, const T& own, T* all) {
  static_assert(sizeof(T) <= slot_payload);
  Exchange exchange(team);
  void* payload;
  STRETTO_TRY(exchange.claim(&payload));
  __builtin_memcpy(payload, &own, sizeof(T));
  exchange.post();
  for (int r = 0; r < team.size; ++r) {
    const void* theirs;
    STRETTO_TRY(exchange.read(r, &theirs));
    __builtin_memcpy(&all[r], theirs, sizeof(T));
  }
  return Status::good();
}

}  // namespace stretto::collective
