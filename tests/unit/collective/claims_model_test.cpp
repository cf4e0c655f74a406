// The protocol of patterns/claims.hpp, in every interleaving: an exhaustive search over all states that two to four ranks can
// reach when each of their atomic steps may come at any time. The steps are those of patterns/epoch.cpp and of the loop of
// patterns/presence_direct.cpp; the words and the forest are the real ones. Epochs take two places in turn here, so that the
// third finds what the first has left. Every order of arrival, and optionally a rank that stops all slices on arrival.
//
// Checked in every state: no slice is worked on by two ranks; no contribution is combined twice, or before it has arrived, or in
// another epoch; partial results are combined by subtrees of the fixed tree alone. In every state without a next step: all ranks
// are through both epochs, and every slice is finished, or stopped where a rank stops. So nothing is lost and nobody waits for
// ever.
//
// Two things keep the search short. A step of which neither outcome nor effect depends on what other ranks can do before it is
// taken at once (is_settled(): a partial-order reduction). And a state is known by a hash of 64 bits: with 10^7 states, one in a
// million searches would leave out a state for another one's sake.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "collective/patterns/forest.hpp"

namespace stretto::collective {
namespace {

constexpr int most_ranks = 4, most_slices_here = 2, places = 2;

enum class At : uint8_t { ticket, enter, look, pick, claim, release, ended, wait_arrival, wait_complete, left };

struct Rank {
  At at = At::ticket;
  uint8_t epoch = 1;
  uint8_t ticket = 0, level = 0, slice = 0, tried = 0, to = 0, worked = 0, stopping = 0, ended = 0;
  uint8_t reserved[6] = {};
  uint64_t seen = 0;  // the word that the claim expects
};

// What is combined in a slice: which ranks' contributions are in the partial result that begins with a rank.
using Partials = std::array<uint8_t, most_ranks>;

struct Place {
  std::array<uint64_t, most_slices_here> words{};
  std::array<uint8_t, most_ranks> tags{};             // epoch << 4 | rank, by ticket
  std::array<Partials, most_slices_here> partials{};  // of its newest epoch
  std::array<uint8_t, most_slices_here> workers{};    // ranks at work
  uint8_t tickets = 0, finished = 0;
};

struct State {
  std::array<Rank, most_ranks> ranks;
  std::array<Place, places> at;
  Place& place(int epoch) { return at[size_t(epoch % places)]; }

  uint64_t hash() const {
    std::array<uint64_t, sizeof(ranks) / 8 + sizeof(at) / 8> words;
    std::memcpy(words.data(), ranks.data(), sizeof ranks);
    std::memcpy(words.data() + sizeof ranks / 8, at.data(), sizeof at);
    uint64_t h = 0;
    for (uint64_t word : words) {  // a multiplication of 128 bits, folded, mixes all of them
      const auto product = static_cast<unsigned __int128>(h ^ word ^ 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
      h = uint64_t(product) ^ uint64_t(product >> 64);
    }
    return h == 0 ? 1 : h;
  }
};
static_assert(std::has_unique_object_representations_v<Rank> && std::has_unique_object_representations_v<Place>);

// The hashes of the states that were seen.
class Known {
 public:
  // Whether it is new.
  bool insert(uint64_t hash) {
    if (2 * (count_ + 1) > table_.size()) grow();
    return put(hash) && ++count_ > 0;
  }
  uint64_t size() const { return count_; }

 private:
  bool put(uint64_t hash) {
    for (size_t i = hash & (table_.size() - 1);; i = (i + 1) & (table_.size() - 1)) {
      if (table_[i] == hash) return false;
      if (table_[i] == 0) return table_[i] = hash, true;
    }
  }
  void grow() {
    std::vector<uint64_t> old(std::max<size_t>(1 << 16, table_.size() * 2));
    old.swap(table_);
    for (uint64_t hash : old)
      if (hash != 0) put(hash);
  }

  std::vector<uint64_t> table_;
  uint64_t count_ = 0;
};

struct Model {
  int ranks, slices, epochs;
  int stopper;  // this rank stops all slices when it has arrived; -1: none
  std::string error;

  // As the real ones: tickets by rank among the first `level` arrivals that a rank has seen.
  std::array<int, most_ranks> tickets_of(const Place& s, int level) const {
    std::array<int, most_ranks> by_rank;
    by_rank.fill(Epoch::absent);
    for (int t = 0; t < level; ++t) by_rank[size_t(s.tags[size_t(t)] & 0xf)] = t;
    return by_rank;
  }

  bool gains(const Place& s, int from, int to) const {
    const auto tickets = tickets_of(s, to);
    constexpr bool room[most_ranks] = {true, true, true, true};
    return Forest(ranks, tickets.data(), room, -1).gains(from, to);
  }

  bool fail(const char* what) {
    if (error.empty()) error = what;
    return false;
  }

  // Combines in slice i what the real code would, contribution by contribution.
  void combine(Place& s, int i, int from, int to) {
    const auto tickets = tickets_of(s, to);
    constexpr bool room[most_ranks] = {true, true, true, true};
    Forest forest(ranks, tickets.data(), room, -1);
    Partials& parts = s.partials[size_t(i)];
    auto visit = [&](auto&& self, Node n) -> void {
      const bool whole = n.size() == ranks && to == ranks;
      if (n.size() < 2 || forest.merged(n, from)) return;
      if (!whole && !forest.merged(n, to)) return self(self, Forest::left(n)), self(self, Forest::right(n));
      self.operator()(self, Forest::left(n)), self.operator()(self, Forest::right(n));
      uint8_t left = parts[size_t(n.begin)], right = parts[size_t(Forest::right(n).begin)];
      uint8_t expected_left = mask(Forest::left(n)), expected_right = mask(Forest::right(n));
      if (left != expected_left || right != expected_right) fail("a subtree is combined from other than its halves");
      parts[size_t(n.begin)] = left | right;
      parts[size_t(Forest::right(n).begin)] = 0;
    };
    visit(visit, forest.root());
  }
  static uint8_t mask(Node n) { return uint8_t(((1u << n.end) - 1) & ~((1u << n.begin) - 1)); }

  bool all_here(const Rank& me) const { return me.level == ranks; }

  // One atomic step of rank r. False: it has none now (it waits, or has left).
  bool step(State& state, int r) {
    Rank& me = state.ranks[size_t(r)];
    const uint64_t epoch = me.epoch;
    Place& s = state.place(me.epoch);
    const auto before = uint64_t((epoch - 1) / places);  // epochs that the place has seen
    auto word = [&]() -> uint64_t& { return s.words[me.slice]; };
    switch (me.at) {
      case At::ticket:
        me.ticket = uint8_t(s.tickets++ - before * uint64_t(ranks));
        if (me.ticket >= ranks) return fail("a ticket of another epoch");
        if (me.ticket == 0)  // in this epoch nothing is combined yet
          for (auto& parts : s.partials)
            for (int p = 0; p < ranks; ++p) parts[size_t(p)] = uint8_t(1u << p);
        return me.at = At::enter, true;
      case At::enter:
        s.tags[me.ticket] = uint8_t(epoch << 4 | unsigned(r));
        return me.at = At::look, true;
      case At::look:  // in one step: those before the first who has not come are there to stay
        for (; me.level < ranks && s.tags[me.level] >> 4 == epoch; ++me.level) me.stopping = me.stopping || r == stopper;
        me.at = At::pick, me.tried = 0, me.worked = 0, me.slice = uint8_t(r % slices);
        return true;
      case At::pick:
        return pick(s, me);
      case At::claim: {
        SliceState mine = SliceState::of(me.seen, epoch);
        mine.owner = uint32_t(r) + 1;
        if (word() != me.seen) return next(me), true;
        word() = mine.word();
        if (s.workers[me.slice]++ != 0) return fail("two ranks work on one slice");
        combine(s, me.slice, int(SliceState::of(me.seen, epoch).level), me.to);  // nobody else sees it before the release
        return me.at = At::release, true;
      }
      case At::release: {
        SliceState done = SliceState::of(word(), epoch);
        if (done.epoch != epoch || done.owner != uint32_t(r) + 1) return fail("a claimed slice was taken");
        if (s.workers[me.slice]-- != 1) return fail("workers");
        done.owner = 0, done.level = me.to;
        if (me.to == ranks) done.stopped = false;
        word() = done.word();
        if (done.stopped || me.to == ranks) ++me.ended;
        me.worked = 1;
        return next(me), true;
      }
      case At::ended:
        s.finished = uint8_t(s.finished + me.ended), me.ended = 0;
        return me.at = all_here(me) ? At::wait_complete : At::wait_arrival, true;
      case At::wait_arrival:
        if (s.tags[me.level] >> 4 != epoch) return false;
        return me.at = At::look, true;
      case At::wait_complete:
        if (s.finished > (before + 1) * uint64_t(slices)) return fail("a slice was finished twice");
        if (s.finished != (before + 1) * uint64_t(slices)) return false;
        return leave(s, me);
      case At::left:
        return false;
    }
    return false;
  }

  // Looks at one slice of the pass, or ends the pass.
  bool pick(Place& s, Rank& me) {
    if (me.tried == slices) {
      me.at = me.worked ? At::look : me.ended > 0 ? At::ended : all_here(me) ? At::wait_complete : At::wait_arrival;
      return true;
    }
    uint64_t& word = s.words[me.slice];
    SliceState seen = SliceState::of(word, me.epoch);
    if (me.stopping) {
      const bool final = int(seen.level) == ranks && seen.owner == 0;
      if (!seen.stopped && !final) {
        if (seen.owner == 0) ++me.ended;
        seen.stopped = true;
        word = seen.word();
      }
      return next(me), true;
    }
    me.to = me.level;
    const bool free = seen.owner == 0 && !seen.stopped && int(seen.level) < me.to;
    if (!free || !gains(s, int(seen.level), me.to)) return next(me), true;
    me.seen = word;
    return me.at = At::claim, true;
  }

  // Between two slices arrivals are looked for.
  void next(Rank& me) const {
    me.slice = uint8_t((me.slice + 1) % slices);
    ++me.tried;
    me.seen = 0;
    me.to = 0;
    me.at = At::pick;
  }

  bool leave(Place& s, Rank& me) {
    for (int i = 0; i < slices; ++i) {
      const SliceState done = SliceState::of(s.words[size_t(i)], me.epoch);
      const bool everything = s.partials[size_t(i)][0] == (1u << ranks) - 1;
      if (!done.stopped && !everything) return fail("finished without all contributions");
      if (done.stopped && stopper < 0) return fail("stopped by nobody");
    }
    const int next_epoch = me.epoch + 1;
    me = Rank{};
    me.epoch = uint8_t(next_epoch);
    if (next_epoch > epochs) me.at = At::left;
    return true;
  }

  // Whether the next step of rank r comes out the same, and does the same to all others, whatever they do first. Words, levels
  // and counts of an epoch only grow: what is not to be claimed now never is, and what is complete remains so.
  bool is_settled(State& state, int r) const {
    const Rank& me = state.ranks[size_t(r)];
    const Place& s = state.place(me.epoch);
    const uint64_t complete = uint64_t((me.epoch - 1) / places + 1) * uint64_t(slices);
    if (me.at == At::ended) return true;  // adds to a number that others wait for to be complete
    if (me.at == At::wait_arrival) return s.tags[me.level] >> 4 == me.epoch;
    if (me.at == At::wait_complete) return s.finished == complete;
    if (me.at == At::claim) return s.words[me.slice] != me.seen;
    if (me.at != At::pick) return false;
    if (me.tried == slices) return true;
    const SliceState seen = SliceState::of(s.words[me.slice], me.epoch);
    if (int(seen.level) == ranks && seen.owner == 0) return true;
    if (me.stopping || seen.stopped) return seen.stopped;
    return int(seen.level) >= me.level || !gains(s, int(seen.level), me.level);
  }
  void settle(State& state) {
    for (int r = 0; r < ranks; ++r)
      while (error.empty() && is_settled(state, r) && step(state, r)) r = 0;
  }

  uint64_t explore();
};

uint64_t Model::explore() {
  State first;
  Known known;
  std::vector<State> open;
  for (int r = ranks; r < most_ranks; ++r) first.ranks[size_t(r)].at = At::left;
  known.insert(first.hash());
  open.push_back(first);
  while (!open.empty() && error.empty()) {
    const State state = open.back();
    open.pop_back();
    bool any = false, all_left = true;
    for (int r = 0; r < ranks && error.empty(); ++r) {
      State next = state;
      all_left = all_left && state.ranks[size_t(r)].at == At::left;
      if (!step(next, r)) continue;
      settle(next);
      any = true;
      if (known.insert(next.hash())) open.push_back(next);
    }
    if (!any && !all_left) fail("a state without a next step");
  }
  return known.size();
}

void expect_sound(int ranks, int slices, int epochs, int stopper) {
  Model model{ranks, slices, epochs, stopper, ""};
  const uint64_t states = model.explore();
  EXPECT_EQ(model.error, "") << ranks << " ranks, " << slices << " slices, " << epochs << " epochs, stopper " << stopper;
  std::printf("%d ranks, %d slices, %d epochs, stopper %d: %llu states\n", ranks, slices, epochs, stopper,
              static_cast<unsigned long long>(states));
}

TEST(ClaimsModel, EveryInterleavingOfTwoRanks) {
  for (int stopper : {-1, 0, 1}) expect_sound(2, 2, 3, stopper);
}

TEST(ClaimsModel, EveryInterleavingOfThreeRanks) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "one thread and many states: the other builds do it";
#endif
  expect_sound(3, 2, 2, -1);
  expect_sound(3, 1, 3, -1);
  for (int stopper : {0, 1, 2}) expect_sound(3, 1, 2, stopper);
  expect_sound(3, 2, 1, 0);
}

TEST(ClaimsModel, EveryInterleavingOfFourRanks) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "one thread and many states: the other builds do it";
#endif
  for (int stopper : {-1, 0, 3}) expect_sound(4, 1, 1, stopper);
  expect_sound(4, 2, 1, -1);
}

}  // namespace
}  // namespace stretto::collective
