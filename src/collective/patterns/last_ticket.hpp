// Meeting by tickets: who draws the last one acts for all.
#pragma once
#include <string.h>

#include "collective/patterns/combine.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

class LastTicket {
 public:
  explicit LastTicket(Team& team) : team_(team), exchange_(team), number_(++team.tickets) {}

  // Room for this rank's payload; to be filled before post().
  Status claim(void** payload) { return exchange_.claim(payload); }

  // Shows the payload and draws a ticket: whether it is the last.
  bool post(const Request& request) {
    exchange_.post(request.bytes(), note_of(request));
    const uint64_t drawn = team_.presence->tickets.value.fetch_add(1, std::memory_order_acq_rel) + 1;
    return drawn == number_ * uint64_t(team_.size);
  }

  // The last: everybody's payload, and where the result goes. *alike: whether all are of this call.
  Status read_all(const Request& request, const void** payloads, Status* alike) {
    for (int r = 0; r < team_.size; ++r) STRETTO_TRY(read_alike(exchange_, request, r, &payloads[r], alike));
    return Status::good();
  }
  void* place() { return team_.presence->result.payload; }
  // Whose note this is may take it; 0: nobody.
  void publish(uint32_t note) {
    team_.presence->result.ready.note = note;
    team_.waiter.announce(team_.presence->result.ready, number_);
    all_read();
  }

  // The others: the result, once published.
  Status result(const Request& request) {
    const Slot& published = team_.presence->result;
    STRETTO_TRY(team_.waiter.until(team_.presence->result.ready, number_, any_rank));
    all_read();
    if (published.ready.note != note_of(request)) return truncated("ranks give messages of different sizes", team_.rank);
    memcpy(request.output, published.payload, request.bytes());
    return Status::good();
  }

 private:
  // The last one has read what the slots held.
  void all_read() {
    for (int r = 0; r < team_.size; ++r) team_.seen_done(r, exchange_.number());
  }

  Team& team_;
  Exchange exchange_;
  const uint64_t number_;
};

// Without payloads: returns when all ranks have come.
inline Status meet(Team& team) {
  Signal& met = team.presence->result.ready;
  const uint64_t number = ++team.tickets;
  const uint64_t drawn = team.presence->tickets.value.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (drawn != number * uint64_t(team.size)) return team.waiter.until(met, number, any_rank);
  met.note = 0;
  team.waiter.announce(met, number);
  return Status::good();
}

}  // namespace stretto::collective
