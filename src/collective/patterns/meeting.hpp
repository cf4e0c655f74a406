// A meeting: an exchange in which everybody posts a small payload and reads everybody's.
//
// A rank that posts its k-th has read all payloads of the one before. So whoever has read all payloads of k knows that nobody
// reads k-1 any more: two slots a rank, used in turn, are enough, and nobody ever waits for a slot. That they are so few also
// keeps their lines near those who use them.
#pragma once
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

class Meeting {
 public:
  explicit Meeting(Team& team) : team_(team), number_(++team.meetings) {}

  uint64_t number() const { return number_; }

  // This rank's payload, to be filled before post().
  void* payload() { return slot(team_.rank).payload; }
  Status claim(void** own) {
    *own = payload();
    return Status::good();
  }

  // `bytes` of it.
  void post(size_t bytes, uint32_t note = 0) {
    Slot& own = slot(team_.rank);
    own.ready.note = note;
    team_.waiter.announce(own.ready, number_);
    offer_payload(own, bytes);
  }

  // The payload of rank r, another one, once posted. Every rank reads all others' before it leaves.
  Status read(int r, const void** payload) {
    Slot& theirs = slot(r);
    STRETTO_TRY(team_.waiter.until(theirs.ready, number_, r));
    team_.seen_done(r, team_.exchanges);  // what it did before it came here
    *payload = theirs.payload;
    return Status::good();
  }

  // Of rank r, which has posted.
  uint32_t note(int r) { return slot(r).ready.note; }

  // Whether rank r has posted, and what it is waited for by.
  bool posted(int r) { return reached(ready(r).value.load(std::memory_order_acquire), number_); }
  Signal& ready(int r) { return slot(r).ready; }

  void finish() {}  // that all have read all will be seen

  // Once all are read.
  void fetch_next(size_t bytes) {
    if (bytes <= most_fetched_by_all) fetch_payload(team_.mine().meeting(number_ + 1), bytes);
  }

 private:
  Slot& slot(int r) { return team_.board(r).meeting(number_); }

  Team& team_;
  const uint64_t number_;
};

// Everybody tells everybody: all[r] receives the T of rank r. Also a barrier.
template <typename T>
Status exchange_all(Team& team, const T& own, std::type_identity_t<T>* all) {
  static_assert(sizeof(T) <= slot_payload);
  Meeting meeting(team);
  __builtin_memcpy(meeting.payload(), &own, sizeof(T));
  meeting.post(sizeof(T));
  all[team.rank] = own;
  for (int r = 0; r < team.size; ++r) {
    if (r == team.rank) continue;
    const void* theirs;
    STRETTO_TRY(meeting.read(r, &theirs));
    __builtin_memcpy(&all[r], theirs, sizeof(T));
  }
  return Status::good();
}

}  // namespace stretto::collective
