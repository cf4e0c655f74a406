// One exchange: ranks post a small payload each, and read those of the ranks they need.
//
// The payload stands in the line that announces it, so a rank that waits for a peer has its data with one transfer of a cache
// line. Slots are used in turn; a rank may run ahead of a slow reader by the length of the ring, then waits for it. Reading a
// peer's exchange k proves that it has finished k-1. Where everybody reads everybody it is a meeting (patterns/meeting.hpp).
#pragma once
#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Fetches the lines of the next payload from those who read them last, while there is time: a store to a line that others hold
// takes as long as a message. Programs repeat themselves, so the next payload will be as long as this one.
inline void fetch_payload(const Slot& next, size_t bytes) {
  prefetch_for_write(&next, offsetof(Slot, payload) + bytes);
}

// Ranks that all give and all read fetch payloads of up to so many bytes. More lines are taken away again before they are stored
// to, and then it takes less time to have fetched none (Zen 4, allreduce of 1 KiB between two ranks: 0.25 us with, 0.20 without;
// of two last-level caches 0.80 and 0.41; of 432 bytes 0.22 and 0.35). Where that begins differs by collective, at 10 to 12
// lines.
inline constexpr size_t most_fetched_by_all = 640;

// The lines of a payload that was announced, to those who read it.
inline void offer_payload(const Slot& slot, size_t bytes) {
  offer(&slot, offsetof(Slot, payload) + bytes);
}

// What a payload is: of a collective whose ranks may give different amounts, which one.
inline uint32_t note_of_kind(Kind kind) {
  return uint32_t(kind) << 1 | 1;
}
// Of a collective in which all give as many bytes, which; 0: of anything else. Ranks that make other calls, or
// with other sizes, find it out by that.
inline uint32_t note_of(const Request& request) {
  constexpr uint32_t exact = 1 << 24, hashed = 1 << 23;
  const uint64_t bytes = request.bytes();
  const uint32_t size = bytes < exact ? uint32_t(bytes) : hashed | uint32_t(bytes * 0x9e3779b97f4a7c15u >> 41);
  return size << 8 | note_of_kind(request.kind);
}
// Of what a slot holds.
inline size_t bytes_of_note(uint32_t note) {
  return note >> 8;
}
inline Status compare_notes(uint32_t own, uint32_t theirs, int rank) {
  if (own == theirs) return Status::good();
  const bool same_call = ((own ^ theirs) & 255) == 0;
  return same_call ? truncated("ranks give messages of different sizes", rank) : calls_differ(rank);
}

class Exchange {
 public:
  explicit Exchange(Team& team) : team_(team), number_(++team.exchanges) {
    if (__builtin_expect(number_ == RankBoard::late_slots_cleared_at, 0)) team_.mine().clear_late_slots();
  }

  uint64_t number() const { return number_; }

  // Own slot, once nobody reads its former payload any more; to be filled before post().
  Status claim(void** payload) {
    STRETTO_TRY(team_.all_done(before_slot_of(number_)));
    *payload = slot(team_.rank).payload;
    return Status::good();
  }

  // `bytes` of it.
  void post(size_t bytes, uint32_t note = 0) { post_as(team_.rank, bytes, note); }

  // The same of rank r's slot, where this rank alone writes to it in this exchange.
  Status claim_of(int r, void** payload) {
    STRETTO_TRY(claim(payload));
    *payload = slot(r).payload;
    return Status::good();
  }
  void post_as(int r, size_t bytes, uint32_t note) {
    Slot& slot_of_r = slot(r);
    slot_of_r.ready.note = note;
    team_.waiter.announce(slot_of_r.ready, number_);
    offer_payload(slot_of_r, bytes);
  }

  // The payload of rank r, once posted.
  Status read(int r, const void** payload) {
    Slot& theirs = slot(r);
    STRETTO_TRY(team_.waiter.until(theirs.ready, number_, r));
    team_.seen_done(r, number_ - 1);
    *payload = theirs.payload;
    return Status::good();
  }

  // Of rank r, which has posted.
  const void* payload_of(int r) { return slot(r).payload; }
  uint32_t note(int r) { return slot(r).ready.note; }

  // Whether rank r has posted, and what it is waited for by.
  bool posted(int r) { return reached(ready(r).value.load(std::memory_order_acquire), number_); }
  Signal& ready(int r) { return slot(r).ready; }

  // This rank reads nobody's payload of this exchange any more. Where everybody has read everybody it need not be said: that they
  // will see this rank's next exchange says it well enough.
  void finish() { team_.waiter.announce(team_.mine().done, number_); }

  // Of a rank that posts, at the end.
  void fetch_next(size_t bytes) { fetch_payload(team_.mine().slots[slot_of(number_ + 1)], bytes); }

 private:
  Slot& slot(int r) { return team_.board(r).slots[slot_of(number_)]; }

  Team& team_;
  const uint64_t number_;
};

// What rank r posted in an exchange or a meeting. *alike: whether all payloads so far are of this call.
template <typename Event>
Status read_alike(Event& event, const Request& request, int r, const void** payload, Status* alike) {
  STRETTO_TRY(event.read(r, payload));
  if (alike->ok()) *alike = compare_notes(note_of(request), event.note(r), r);
  return Status::good();
}

// The message that rank r posts, also to where request.output is, as much as there is room for: shorter ones are taken, as MPI
// does.
inline Status receive_message(Exchange& exchange, const Request& request, int r, const void** message) {
  Status alike;
  STRETTO_TRY(read_alike(exchange, request, r, message, &alike));
  const size_t bytes = bytes_of_note(exchange.note(r));
  request.came(0, bytes);
  if (alike.code != Code::disagreed) __builtin_memcpy(request.output, *message, std::min(bytes, request.bytes()));
  return alike.code == Code::truncated && bytes < request.bytes() ? Status::good() : alike;
}

// What rank r posted, where a rank that finds out cannot come to an end with the others.
template <typename Event>
Status read_same(Event& event, const Request& request, int r, const void** payload) {
  STRETTO_TRY(event.read(r, payload));
  return event.note(r) == note_of(request) ? Status::good() : calls_differ(r);
}

// Everybody tells everybody, in the slots where most shipments label their calls, so that ranks which make different calls see
// that: all[r] receives the T of rank r.
template <typename T>
Status compare_all(Team& team, const T& own, std::type_identity_t<T>* all) {
  static_assert(sizeof(T) <= slot_payload);
  Exchange exchange(team);
  void* payload;
  STRETTO_TRY(exchange.claim(&payload));
  __builtin_memcpy(payload, &own, sizeof(T));
  exchange.post(sizeof(T));
  for (int r = 0; r < team.size; ++r) {
    const void* theirs = payload;
    if (r != team.rank) STRETTO_TRY(exchange.read(r, &theirs));
    __builtin_memcpy(&all[r], theirs, sizeof(T));
  }
  return Status::good();
}

}  // namespace stretto::collective
