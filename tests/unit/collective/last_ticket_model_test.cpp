// Last-ticket combining (patterns/last_ticket.hpp) in every interleaving: the real code on ranks that a search moves one step at
// a time, through all states that they can reach. A step ends where a rank has shown something, or before it writes what others
// may still read; that a rank would have to wait inside a step is an error. Calls follow one another without anything in
// between, so whoever is slow still reads what the next call's last rank overwrites, if that is possible; those before the search
// make it come to where slots are used again.
//
// Checked in every state: who has drawn the last ticket finds all deposits of its call, everybody takes the result of its own
// call, and somebody can move until all are through. A rank that gives a message of another size makes all of that call's end in
// an error and none of the next.
//
// A state is known by where its ranks are: nothing in a later call depends on who was the last in an earlier one.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "collective/patterns/last_ticket.hpp"
#include "interleavings.hpp"

namespace stretto::collective {
namespace {

enum class At : uint8_t { deposit, post, combine, publish, take, draw, met };

// What is searched: calls that combine (+) and that only meet (|).
struct Search {
  int ranks;
  std::string calls;
  int before = 0;   // so many calls are done first, in one order
  int uneven = -1;  // this rank's message of the first call is longer

  std::string print() const { return std::to_string(ranks) + " ranks, calls " + calls + " after " + std::to_string(before); }
};

class World {
 public:
  explicit World(const Search& search) : search_(search), teams_(search.ranks), ranks_(size_t(search.ranks)) {
    for (Rank& rank : ranks_) enter(rank, 0);
    for (int call = 1; call <= search.before; ++call) go_to(call);
  }

  // By which states are known: where each rank is.
  std::string key() const {
    std::string key;
    for (const Rank& rank : ranks_) key += char(rank.call), key += char(rank.at);
    return key;
  }
  bool is_through(int r) const { return ranks_[size_t(r)].call == calls(); }
  // One step of rank r, if it has one: else nothing changes. What is wrong, or nothing.
  std::string move(int r) {
    if (is_through(r)) return "";
    Rank& rank = ranks_[size_t(r)];
    const int call = rank.call;
    const At at = rank.at;
    const Status status = step(teams_.team(r), rank);
    if (at == At::take && status.code == Code::peer_lost) return "";  // it would wait
    const bool must_fail = at == At::take && is_uneven(call);
    const bool good = must_fail ? status.code == Code::truncated : status.ok();
    return good
               ? ""
               : "rank " + std::to_string(r) + ", call " + std::to_string(call) + ": " + (status.ok() ? "no error" : status.what);
  }

 private:
  struct Rank {
    int call = 0;
    At at = At::deposit;
    int32_t input[2] = {}, output[2] = {};
    Request request;
    std::optional<LastTicket> meeting;
  };

  int calls() const { return search_.before + int(search_.calls.size()); }
  bool combines(int call) const { return call < search_.before || search_.calls[size_t(call - search_.before)] == '+'; }
  bool is_uneven(int call) const { return search_.uneven >= 0 && call == search_.before; }

  void enter(Rank& rank, int call) {
    rank.call = call;
    rank.meeting.reset();
    rank.at = call < calls() && !combines(call) ? At::draw : At::deposit;
  }
  void go_to(int call) {
    const auto is_there = [&](const Rank& rank) { return rank.call >= call; };
    while (!std::all_of(ranks_.begin(), ranks_.end(), is_there)) {
      const std::string before = key();
      for (int r = 0; r < search_.ranks; ++r) ASSERT_EQ(is_there(ranks_[size_t(r)]) ? "" : move(r), "");
      ASSERT_NE(key(), before) << "nobody can move";
    }
  }

  Status step(Team& team, Rank& rank) {
    switch (rank.at) {
      case At::deposit:
        return deposit(team, rank);
      case At::post:
        rank.at = rank.meeting->post(rank.request) ? At::combine : At::take;
        return Status::good();
      case At::combine:
        return combine_all(team, rank);
      case At::publish:
        rank.meeting->publish(is_uneven(rank.call) ? 0 : note_of(rank.request));
        return end(rank, is_uneven(rank.call));
      case At::take: {
        const Status status = rank.meeting->result(rank.request);
        if (status.code == Code::truncated) enter(rank, rank.call + 1);
        return status.ok() ? end(rank, false) : status;
      }
      case At::draw: {
        const Status status = meet(team);  // "a rank died" where it would wait
        if (!status.ok()) rank.at = At::met;
        return status.ok() ? end(rank, true) : Status::good();
      }
      case At::met: {
        const Signal& published = team.presence->result.ready;
        return reached(published.value.load(), team.tickets) ? end(rank, true) : Status::good();
      }
    }
    return Status::good();
  }

  Status deposit(Team& team, Rank& rank) {
    rank.input[0] = 1 << 4 * team.rank, rank.input[1] = rank.call;
    Request& request = rank.request;
    request.kind = Kind::allreduce;
    request.type = kernels::Type::i32;
    request.element = 4;
    request.count = is_uneven(rank.call) && team.rank != search_.uneven ? 1 : 2;
    request.input = rank.input;
    request.output = rank.output;
    rank.meeting.emplace(team);
    void* room;
    STRETTO_TRY(rank.meeting->claim(&room));
    std::memcpy(room, rank.input, request.bytes());
    rank.at = At::post;
    return Status::good();
  }

  Status combine_all(Team& team, Rank& rank) {
    Status alike;
    const void** inputs = team.pointers();
    STRETTO_TRY(rank.meeting->read_all(rank.request, inputs, &alike));
    if (alike.ok() == is_uneven(rank.call)) return invalid("sizes were compared wrongly", team.rank);
    rank.at = At::publish;
    if (!alike.ok()) return Status::good();
    void* place = rank.meeting->place();
    combine(rank.request, inputs, team.size, place, rank.request.count);
    std::memcpy(rank.output, place, rank.request.bytes());
    return Status::good();
  }

  bool has_come(const Rank& rank, int call) const {
    const bool is_before = rank.at == At::deposit || rank.at == At::post || rank.at == At::draw;
    return rank.call > call || (rank.call == call && !is_before);
  }

  // Of a call without a result there is nothing to compare.
  Status end(Rank& rank, bool without_result) {
    for (const Rank& other : ranks_)
      if (&other != &rank && !has_come(other, rank.call)) return invalid("left before all had come", rank.call);
    const int32_t ones = (1 << 4 * search_.ranks) / 15;  // 0x111
    const bool right = without_result || (rank.output[0] == ones && rank.output[1] == rank.call * search_.ranks);
    const Status status = right ? Status::good() : invalid("the result of another call", rank.call);
    enter(rank, rank.call + 1);
    return status;
  }

  const Search search_;
  WithoutWaiting teams_;
  std::vector<Rank> ranks_;
};

constexpr int until_slots_are_used_again = int(first_slot_ring) - 1;

TEST(LastTicketModel, EveryInterleavingOfTwoRanks) {
  for (int before : {0, until_slots_are_used_again})
    for (const char* calls : {"+++", "+|+", "|+|", "||+"}) expect_sound<World>(Search{2, calls, before});
}

TEST(LastTicketModel, EveryInterleavingOfThreeRanks) {
  for (const char* calls : {"+++", "+|+"}) expect_sound<World>(Search{3, calls, until_slots_are_used_again});
  for (int rank = 0; rank < 3; ++rank) expect_sound<World>(Search{3, "++", 0, rank});
}

TEST(LastTicketModel, EveryInterleavingOfFourRanks) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "one thread: the other builds do it";
#endif
  for (const char* calls : {"+++", "+|+"}) expect_sound<World>(Search{4, calls, until_slots_are_used_again});
}

}  // namespace
}  // namespace stretto::collective
