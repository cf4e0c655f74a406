// Last-ticket combining in two levels (patterns/domain_tickets.hpp) in every interleaving: the real code, as in
// last_ticket_model_test.cpp. Checked in every state: who combines finds all that it needs, everybody takes the result of its own
// call, nobody leaves before all have come, and somebody can move until all are through.
#include <cstring>
#include <optional>

#include "collective/patterns/domain_tickets.hpp"
#include "interleavings.hpp"

namespace stretto::collective {
namespace {

enum class At : uint8_t { deposit, combine_home, combine_all, take, draw, draw_for_all, tell, met };

// Calls that combine (+) and that only meet (|), of ranks in domains.
struct Search {
  std::vector<int32_t> domains;
  std::string calls;
  int before = 0;   // so many combining calls are done first, in one order
  int uneven = -1;  // this rank's message of the first call is longer: all must be told so, and the next calls be right
  int ranks = int(domains.size());

  std::string print() const {
    std::string text = "domains";
    for (int32_t domain : domains) text += ' ' + std::to_string(domain);
    return text + ", calls " + calls + " after " + std::to_string(before);
  }
};

class World {
 public:
  explicit World(const Search& search) : search_(search), teams_(search.ranks, search.domains), ranks_(size_t(search.ranks)) {
    for (Rank& rank : ranks_) enter(rank, 0);
    for (int call = 1; call <= search.before; ++call) go_to(call);
  }

  std::string key() const {
    std::string key;
    for (const Rank& rank : ranks_) key += char(rank.call), key += char(rank.at);
    return key;
  }
  bool is_through(int r) const { return ranks_[size_t(r)].call == calls(); }
  std::string move(int r) {
    if (is_through(r)) return "";
    Rank& rank = ranks_[size_t(r)];
    const int call = rank.call;
    const bool takes = rank.at == At::take;
    const Status status = step(teams_.team(r), rank);
    if (status.ok() || (takes && status.code == Code::peer_lost)) return "";  // the latter would wait
    return "rank " + std::to_string(r) + ", call " + std::to_string(call) + ": " + status.what;
  }

 private:
  struct Rank {
    int call = 0;
    At at = At::deposit;
    int32_t input[2] = {}, output[2] = {};
    Request request;
    std::optional<TicketsReduction> reduction;
    std::optional<DomainTickets> tickets;
  };

  int calls() const { return search_.before + int(search_.calls.size()); }
  bool combines(int call) const { return call < search_.before || search_.calls[size_t(call - search_.before)] == '+'; }

  void enter(Rank& rank, int call) {
    rank.call = call;
    rank.at = call < calls() && !combines(call) ? At::draw : At::deposit;
  }
  void go_to(int call) {
    for (int turns = 0; turns < 10; ++turns)
      for (int r = 0; r < search_.ranks; ++r) ASSERT_EQ(ranks_[size_t(r)].call < call ? move(r) : "", "");
    for (const Rank& rank : ranks_) ASSERT_EQ(rank.call, call);
  }

  Status step(Team& team, Rank& rank) {
    bool last = false;
    switch (rank.at) {
      case At::deposit:
        prepare(team, rank);
        STRETTO_TRY(rank.reduction->deposit(&last));
        return go_on(rank, last ? At::combine_home : At::take);
      case At::combine_home:
        STRETTO_TRY(rank.reduction->combine_home(&last));
        return go_on(rank, last ? At::combine_all : At::take);
      case At::combine_all:
        return end_of(rank, rank.reduction->combine_all());
      case At::take:
        return end_of(rank, rank.reduction->take());
      case At::draw:
        rank.tickets.emplace(team, DomainTickets::meetings);
        return go_on(rank, rank.tickets->draw() ? At::draw_for_all : At::met);
      case At::draw_for_all:
        return go_on(rank, rank.tickets->draw_for_all() ? At::tell : At::met);
      case At::tell:
        for (int d = 0; d < team.domains.count(); ++d) team.waiter.announce(rank.tickets->board(d).met, rank.tickets->number());
        return end(rank);
      case At::met: {
        const Signal& met = rank.tickets->board(rank.tickets->home()).met;
        return reached(met.value.load(), rank.tickets->number()) ? end(rank) : Status::good();
      }
    }
    return Status::good();
  }
  bool is_uneven(int call) const { return search_.uneven >= 0 && call == search_.before; }
  Status end_of(Rank& rank, const Status& status) {
    if (status.code == Code::peer_lost) return status;
    if (is_uneven(rank.call) && status.ok()) return invalid("sizes that differ were not noticed", rank.call);
    if (is_uneven(rank.call) && status.code == Code::truncated) return enter(rank, rank.call + 1), Status::good();
    return status.ok() ? end(rank) : status;
  }
  static Status go_on(Rank& rank, At at) {
    rank.at = at;
    return Status::good();
  }

  void prepare(Team& team, Rank& rank) {
    rank.input[0] = 1 << 4 * team.rank, rank.input[1] = rank.call;
    rank.output[0] = rank.output[1] = -1;
    rank.request = {Kind::allreduce,
                    kernels::Op::sum,
                    kernels::Type::i32,
                    is_uneven(rank.call) && team.rank != search_.uneven ? 1u : 2u,
                    4,
                    0,
                    rank.input,
                    rank.output,
                    {}};
    rank.reduction.emplace(team, rank.request);
  }

  bool has_come(const Rank& rank, int call) const {
    const bool is_before = rank.at == At::deposit || rank.at == At::draw;
    return rank.call > call || (rank.call == call && !is_before);
  }
  Status end(Rank& rank) {
    for (const Rank& other : ranks_)
      if (&other != &rank && !has_come(other, rank.call)) return invalid("left before all had come", rank.call);
    const int32_t ones = (1 << 4 * search_.ranks) / 15;  // 0x111
    const bool right = !combines(rank.call) || (rank.output[0] == ones && rank.output[1] == rank.call * search_.ranks);
    enter(rank, rank.call + 1);
    return right ? Status::good() : invalid("the result of another call", rank.call);
  }

  const Search search_;
  WithoutWaiting teams_;
  std::vector<Rank> ranks_;
};

constexpr int until_slots_are_used_again = int(first_slot_ring) / 3;  // each call has three exchanges

TEST(DomainTicketsModel, EveryInterleavingOfTwoAndThreeRanks) {
  for (int before : {0, until_slots_are_used_again})
    for (const char* calls : {"++++", "+|+", "|+|", "||+"}) {
      expect_sound<World>(Search{{0, 1}, calls, before});
      expect_sound<World>(Search{{0, 0, 1}, calls, before});
      expect_sound<World>(Search{{0, 1, 0}, calls, before});
    }
}

TEST(DomainTicketsModel, AllAreToldOfSizesThatDiffer) {
  for (int rank = 0; rank < 3; ++rank) {
    expect_sound<World>(Search{{0, 0, 1}, "++", until_slots_are_used_again, rank});
    expect_sound<World>(Search{{0, 1, 1}, "++", 0, rank});
  }
}

TEST(DomainTicketsModel, EveryInterleavingOfFourRanks) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "one thread: the other builds do it";
#endif
  for (const char* calls : {"++", "+|+"}) expect_sound<World>(Search{{0, 0, 1, 1}, calls, until_slots_are_used_again});
  expect_sound<World>(Search{{0, 1, 1, 2}, "++", until_slots_are_used_again});
}

}  // namespace
}  // namespace stretto::collective
