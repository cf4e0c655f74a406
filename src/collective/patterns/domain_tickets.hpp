// Meeting by tickets in two levels: who draws the last one of its domain acts for the domain, and of those who draws the last one
// of all acts for all. A line goes to another domain once for each that acts there, and not once for each rank.
//
// What a domain has in common stands on the board of its first rank: its tickets, and in that rank's slots what its last one
// makes of its vectors and what comes back. Others write there, one in each call. Nobody leaves before the last ticket of all is
// drawn, so all have left the call before.
#pragma once
#include <string.h>

#include "collective/patterns/by_domain.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

class DomainTickets {
 public:
  enum Of { meetings, reductions };  // each has tickets of its own: calls that differ must not end one another

  explicit DomainTickets(Team& team, Of of)
      : team_(team), of_(of), home_(team.domains.of(team.rank)), number_(++team.domain_tickets[of]) {}

  // Draws a ticket of the own domain: whether it is the last.
  bool draw() { return draw(board(home_).drawn[of_], team_.domains.size(home_)); }
  // Then one for the domain.
  bool draw_for_all() { return draw(team_.shared().drawn_by_domains[of_], team_.domains.count()); }

  uint64_t number() const { return number_; }
  int home() const { return home_; }
  RankBoard& board(int domain) { return team_.board(team_.domains.leader(domain)); }

 private:
  bool draw(std::atomic<uint64_t>& drawn, int of) {
    return drawn.fetch_add(1, std::memory_order_acq_rel) + 1 == number_ * uint64_t(of);
  }

  Team& team_;
  const Of of_;
  const int home_;
  const uint64_t number_;
};

// Allreduce of a small vector. Needs combines_by_domain().
class TicketsReduction {
 public:
  TicketsReduction(Team& team, const Request& request)
      : team_(team),
        domains_(team.domains),
        request_(request),
        begun_(team.exchanges),
        inner_(team),
        outer_(team),
        back_(team),
        tickets_(team, DomainTickets::reductions) {}

  // In turn, as far as a rank gets: true, it has drawn the last ticket, and goes on; else take().
  Status deposit(bool* last) {
    void* payload;
    STRETTO_TRY(inner_.claim(&payload));
    memcpy(payload, request_.input, request_.bytes());
    inner_.post(request_.bytes(), note_of(request_));
    *last = tickets_.draw();
    return Status::good();
  }
  Status combine_home(bool* last) {
    const int leader = domains_.leader(tickets_.home()), ranks = domains_.size(tickets_.home());
    const void** inputs = team_.pointers();
    void* partial;
    for (int k = 0; k < ranks; ++k)
      STRETTO_TRY(read_alike(inner_, request_, domains_.member(tickets_.home(), k), &inputs[k], &alike_));
    STRETTO_TRY(outer_.claim_of(leader, &partial));
    if (alike_.ok()) combine(request_, inputs, ranks, partial, request_.count);
    outer_.post_as(leader, request_.bytes(), note());
    *last = tickets_.draw_for_all();
    return Status::good();
  }
  Status combine_all() {
    const void** inputs = team_.pointers();
    for (int d = 0; d < domains_.count(); ++d) {
      STRETTO_TRY(outer_.read(domains_.leader(d), &inputs[d]));
      expect_same(outer_.note(domains_.leader(d)));
    }
    void* result;
    STRETTO_TRY(back_.claim_of(domains_.leader(tickets_.home()), &result));
    if (alike_.ok()) combine(request_, inputs, domains_.count(), result, request_.count);
    for (int d = 0; d < domains_.count(); ++d) {
      const int leader = domains_.leader(d);
      void* place;
      STRETTO_TRY(back_.claim_of(leader, &place));
      if (place != result && alike_.ok()) memcpy(place, result, request_.bytes());
      back_.post_as(leader, request_.bytes(), note());
    }
    return leave(result);
  }

  // The result, once it stands in the own domain.
  Status take() {
    const int leader = domains_.leader(tickets_.home());
    STRETTO_TRY(team_.waiter.until(back_.ready(leader), back_.number(), any_rank));
    expect_same(back_.note(leader));
    return leave(back_.payload_of(leader));
  }

 private:
  uint32_t note() const { return alike_.ok() ? note_of(request_) : 0; }
  void expect_same(uint32_t note) {
    if (alike_.ok() && note != note_of(request_)) alike_ = truncated("ranks give messages of different sizes", team_.rank);
  }

  // All have come, so all have left what was before.
  Status leave(const void* result) {
    for (int r = 0; r < team_.size; ++r) team_.seen_done(r, begun_);
    if (alike_.ok()) memcpy(request_.output, result, request_.bytes());
    return alike_;
  }

  Team& team_;
  const Domains& domains_;
  const Request& request_;
  const uint64_t begun_;
  Exchange inner_, outer_, back_;
  DomainTickets tickets_;
  Status alike_;  // whether all vectors that this rank has seen are of this call
};

}  // namespace stretto::collective
