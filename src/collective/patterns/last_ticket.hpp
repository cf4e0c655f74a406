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
  bool post(size_t bytes) {
    exchange_.post(bytes);
    const uint64_t drawn = team_.presence->tickets.value.fetch_add(1, std::memory_order_acq_rel) + 1;
    return drawn == number_ * uint64_t(team_.size);
  }

  // The last: everybody's payload, and where the result goes.
  Status read_all(const void** payloads) {
    for (int r = 0; r < team_.size; ++r) STRETTO_TRY(exchange_.read(r, &payloads[r]));
    return Status::good();
  }
  void* place() { return team_.presence->result.payload; }
  void publish() {
    team_.waiter.announce(team_.presence->result.ready, number_);
    all_read();
  }

  // The others: the result, once published.
  Status result(void* out, size_t bytes) {
    STRETTO_TRY(team_.waiter.until(team_.presence->result.ready, number_, any_rank));
    memcpy(out, team_.presence->result.payload, bytes);
    all_read();
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
  team.waiter.announce(met, number);
  return Status::good();
}

}  // namespace stretto::collective
