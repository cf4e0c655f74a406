#include "collective/trials.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <vector>

#include "collective/algorithms.hpp"
#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

constexpr size_t size = 100'000;
constexpr int calls_of_trial = 10, calls_after_first = 8;
constexpr int calls_if_clear = 7;  // of a trial in which the second way is clearly slower

// So many calls, of which either way takes so many ticks, watched or not: how many went the first way, and how many were timed.
struct Went {
  int first = 0, timed = 0;
};
Went call(Trials<2>& trials, int calls, const uint64_t (&ticks)[2], size_t bytes = size, bool watch = false) {
  Went went;
  for (int i = 0; i < calls; ++i) {
    const auto choice = trials.choose(bytes);
    went.first += choice.way == 0;
    went.timed += choice.timed;
    if (choice.timed) trials.note(bytes, choice.way, ticks[choice.way]);
    if (watch && choice.watched) trials.watch(bytes, ticks[choice.way]);
  }
  return went;
}

TEST(Trials, TheFasterWayIsUsed) {
  for (const bool second : {false, true}) {
    Trials<2> trials;
    const uint64_t ticks[] = {second ? 3000u : 1000u, 2000};
    const int calls = second ? calls_of_trial : calls_if_clear;
    const Went tried = call(trials, calls, ticks), then = call(trials, calls_after_first, ticks);
    EXPECT_EQ(tried.first, calls_of_trial / 2);
    EXPECT_EQ(tried.timed, calls);
    EXPECT_EQ(then.first, second ? 0 : calls_after_first);
    EXPECT_EQ(then.timed, 0);
    EXPECT_EQ(trials.fastest(size), second ? 1 : 0);
  }
}

TEST(Trials, OfThreeWays) {
  for (int fastest = 0; fastest < 3; ++fastest) {
    Trials<3> trials;
    for (int i = 0; i < 15; ++i) {
      const auto choice = trials.choose(size);
      ASSERT_TRUE(choice.timed);
      ASSERT_EQ(choice.way, i / 5);
      trials.note(size, choice.way, choice.way == fastest ? 1000 : 1100);
    }
    EXPECT_EQ(trials.fastest(size), fastest);
  }
}

TEST(Trials, AreRareWhereNothingChanges) {
  Trials<2> trials;
  const Went went = call(trials, 100'000, {1000, 1200});
  EXPECT_LE(went.timed, 35 * calls_of_trial);
  EXPECT_EQ(went.first, 100'000 - went.timed / 2);
}

TEST(Trials, AreRarestWhereTheDifferenceIsClear) {
  Trials<2> trials;
  EXPECT_EQ(call(trials, 4000, {3000, 1000}).timed, calls_of_trial + calls_if_clear) << "the first alone says little";
}

TEST(Trials, NoticeAChange) {
  Trials<2> trials;
  call(trials, calls_if_clear + calls_after_first, {1000, 5000});
  EXPECT_EQ(trials.fastest(size), 0);
  const Went went = call(trials, calls_of_trial + calls_after_first, {1000, 900});
  EXPECT_EQ(trials.fastest(size), 1);
  EXPECT_EQ(went.first, calls_of_trial / 2);
}

TEST(Trials, OneSlowOrQuickCallIsNoEvidence) {
  for (const uint64_t odd : {1'000'000, 1}) {
    Trials<2> trials;
    const uint64_t usual = odd == 1 ? 3000 : 1000;
    call(trials, 1, {odd, 2000});
    call(trials, (odd == 1 ? calls_of_trial : calls_if_clear) - 1, {usual, 2000});
    EXPECT_EQ(trials.fastest(size), odd == 1 ? 1 : 0);
  }
}

// One that is slow once may still be the fastest; one that is slow twice is not tried on.
TEST(Trials, LeaveWhatIsClearlySlower) {
  Trials<3> trials;
  const auto trial = [&](const uint64_t (&ticks)[3], uint64_t once) {
    int calls[3] = {};
    for (auto choice = trials.choose(size); choice.timed; choice = trials.choose(size))
      trials.note(size, choice.way, calls[choice.way]++ ? ticks[choice.way] : once);
    return std::vector<int>(calls, calls + 3);
  };
  EXPECT_EQ(trial({1000, 1600, 900}, 9000), (std::vector<int>{5, 2, 5}));
  EXPECT_EQ(trials.fastest(size), 2);
  for (int i = 1; i < calls_after_first; ++i) EXPECT_FALSE(trials.choose(size).timed);
  EXPECT_EQ(trial({1000, 1600, 900}, 900), (std::vector<int>{5, 5, 5})) << "one quick call is reason enough to try on";
}

// What is known to be slower is not tried at all.
TEST(Trials, LeaveOutWhatCannotBeFaster) {
  Trials<2> trials;
  for (int i = 0; i < 5; ++i) {
    const auto choice = trials.choose(size);
    EXPECT_EQ(choice.begins, i == 0);
    trials.note(size, choice.way, 1000);
  }
  const auto next = trials.choose(size);
  EXPECT_TRUE(next.timed && next.begins && next.way == 1);
  EXPECT_FLOAT_EQ(next.known, 1000.0f / size);
  trials.leave_out(size, 1);
  EXPECT_FALSE(trials.choose(size).timed);
  EXPECT_EQ(trials.fastest(size, 1), 0);
}

// Ways that are alike are not tried for ever, whichever of them happens to be the fastest.
TEST(Trials, AreRareWhereWaysAreAlike) {
  Trials<2> trials;
  std::mt19937 random(5);
  int timed = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto choice = trials.choose(size);
    timed += choice.timed;
    if (choice.timed) trials.note(size, choice.way, 1000 + random() % 200);
  }
  EXPECT_LE(timed, 35 * calls_of_trial);
}

TEST(Trials, EachSizeHasItsOwn) {
  Trials<2> trials;
  call(trials, calls_if_clear, {1000, 2000}, 20'000);
  call(trials, calls_of_trial, {2000, 1000}, 40'000);
  EXPECT_EQ(trials.fastest(17'000), 0);
  EXPECT_EQ(trials.fastest(60'000), 1);
  for (const size_t bytes : {size_t(1), size_t(1) << 45}) EXPECT_TRUE(trials.choose(bytes).timed);
}

TEST(Trials, ThatCannotBeTimedEnd) {
  Trials<2> trials;
  EXPECT_EQ(trials.fastest(size, 1), 1) << "nothing is known";
  call(trials, calls_if_clear + calls_after_first, {1000, 2000});
  EXPECT_EQ(trials.fastest(size, 1), 0);
  int timed = 0;
  for (int i = 0; i < 24; ++i) {
    if (!trials.choose(size).timed) continue;
    ++timed;
    trials.miss(size);
  }
  EXPECT_EQ(timed, 16);
  EXPECT_EQ(trials.fastest(size), 0);
}

// Nor are those for ever of which none has come to its end.
TEST(Trials, ThatCanNeverBeTimedAreRare) {
  Trials<2> trials;
  int timed = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto choice = trials.choose(size, true, 1);
    if (choice.timed) ++timed, trials.miss(size);
  }
  EXPECT_LE(timed, 30 * 16);
  EXPECT_EQ(trials.fastest(size, 1), 1) << "nothing is known";
  call(trials, 10'000, {1000, 2000});
  EXPECT_EQ(trials.fastest(size, 1), 0);
}

// Where a trial is far away, and what it would find is another thing now: the way that was the fastest has become slow, or what
// made both slow has gone.
TEST(Trials, WatchedCallsBringTheNextForward) {
  for (const bool slower : {false, true}) {
    Trials<2> trials;
    call(trials, 3000, {slower ? 1000u : 9000u, 4000}, size, true);
    EXPECT_EQ(trials.fastest(size), slower ? 0 : 1);
    EXPECT_EQ(call(trials, 20, {slower ? 1000u : 9000u, 4000}, size, true).timed, 0);
    call(trials, 40, {slower ? 9000u : 1000u, slower ? 4000u : 1900u}, size, true);
    EXPECT_EQ(trials.fastest(size), slower ? 1 : 0);
  }
}

// The way that was the fastest is slow for a while: then no call that goes the other way shows that it is fast again.
TEST(Trials, ComeBackToWhatWasFaster) {
  for (const uint64_t meanwhile : {2500, 9000}) {
    Trials<2> trials;
    call(trials, 3000, {700, 2000}, size, true);
    call(trials, 1500, {meanwhile, 2000}, size, true);
    EXPECT_EQ(trials.fastest(size), 1);
    call(trials, 300, {700, 2000}, size, true);
    EXPECT_EQ(trials.fastest(size), 0);
  }
}

// But not to what was fast long ago.
TEST(Trials, AreRareAgainWhereNothingComesBack) {
  Trials<2> trials;
  call(trials, 3000, {700, 2000}, size, true);
  call(trials, 10'000, {9000, 2000}, size, true);
  EXPECT_LE(call(trials, 20'000, {9000, 2000}, size, true).timed, 10 * calls_if_clear);
}

TEST(Trials, OneOddWatchedCallIsNoNews) {
  Trials<2> trials;
  call(trials, 3000, {1000, 3000}, size, true);
  int watched = 0, timed = 0;
  for (int i = 0; i < 800; ++i) {
    const auto choice = trials.choose(size);
    timed += choice.timed;
    if (choice.watched) trials.watch(size, ++watched % 3 ? 1000 : 50'000);
  }
  EXPECT_EQ(watched, 100);
  EXPECT_EQ(timed, 0);
}

// Times that never stay the same do not make for trials without end.
TEST(Trials, WatchedCallsOfAllTimesAreNoReasonToGoOn) {
  Trials<2> trials;
  std::mt19937 random(7);
  int timed = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto choice = trials.choose(size);
    const uint64_t ticks = 1000 + (random() % 4 ? 0 : 5000) + (choice.way ? 900 : 0);
    timed += choice.timed;
    if (choice.timed) trials.note(size, choice.way, ticks);
    if (choice.watched) trials.watch(size, random() % 4 ? 9000 : ticks);
  }
  EXPECT_LE(timed, 5000);
  EXPECT_GE(timed, 1000) << "they are news now and then";
}

TEST(Trials, WhatIsSettledIsNotTried) {
  Trials<2> trials;
  trials.settle(1);
  const Went went = call(trials, 1000, {1, 2});
  EXPECT_EQ(went.timed, 0);
  EXPECT_EQ(went.first, 0);
}

// Ranks that time calls together must choose alike, whatever happens between those calls.
void reduce_for_all(int ranks) {
  constexpr size_t n = 40'000;
  TeamOfThreads threads(ranks);
  std::atomic<int> ways[3] = {0, 0, 0};
  threads.run([&](Team& team) {
    std::vector<double> in(n), out(n);
    for (size_t i = 0; i < 60; ++i) {
      for (size_t k = 0; k < n; ++k) in[k] = double(k + i + n * size_t(team.rank));
      Request request;
      request.kind = Kind::allreduce;
      request.type = kernels::Type::f64;
      request.op = kernels::Op::sum;
      request.element = 8;
      request.count = n;
      request.input = in.data();
      request.output = out.data();
      if (i % 7 == 0) team.waiter.begin_beside(nullptr);
      const auto next = Trials<3>(team.for_all).choose(8 * n);
      if (i % 7 != 0 && next.timed) ++ways[next.way];
      STRETTO_TRY(allreduce_adaptive(team, request));
      team.waiter.end_beside();
      for (size_t k = 0; k < n; ++k)
        if (out[k] != double(size_t(ranks) * (k + i) + n * size_t(ranks * (ranks - 1) / 2))) return invalid("wrong sum", int(i));
    }
    return Status::good();
  });
  for (const auto& way : ways) EXPECT_GE(way, (&way == &ways[1] ? 1 : 2) * ranks);
  for (int r = 1; r < ranks; ++r) {
    Trials<3> first = threads.team(0).for_all, other = threads.team(r).for_all;
    const auto next = first.choose(8 * n), same = other.choose(8 * n);
    EXPECT_TRUE(next.way == same.way && next.timed == same.timed) << r;
  }
}
TEST(Trials, OfReductionsForTwo) {
  reduce_for_all(2);
}
TEST(Trials, OfReductionsForThree) {
  reduce_for_all(3);
}

TEST(Trials, OfReductionsBetweenTwoRanks) {
  constexpr size_t most = 40'000;
  TeamOfThreads threads(2);
  threads.run([&](Team& team) {
    std::vector<double> in(most), out(most);
    for (size_t i = 0; i < 200; ++i) {
      const int root = int(i / 3 % 2);
      const size_t n = i % 2 ? most : 3000;
      for (size_t k = 0; k < n; ++k) in[k] = 1.0 / double(1 + k + i + most * size_t(team.rank));
      Request request;
      request.kind = Kind::reduce;
      request.type = kernels::Type::f64;
      request.op = kernels::Op::sum;
      request.element = 8;
      request.count = n;
      request.root = root;
      request.input = in.data();
      request.output = team.rank == root ? out.data() : nullptr;
      if (i % 7 == 0) team.waiter.begin_beside(nullptr);
      STRETTO_TRY(reduce_adaptive(team, request));
      team.waiter.end_beside();
      for (size_t k = 0; k < n && team.rank == root; ++k)
        if (out[k] != 1.0 / double(1 + k + i) + 1.0 / double(1 + k + i + most)) return invalid("wrong sum", int(i));
    }
    return Status::good();
  });
  for (const size_t bytes : {8 * most, size_t(8) * 3000}) {
    EXPECT_EQ(threads.team(0).reductions.fastest(bytes), threads.team(1).reductions.fastest(bytes));
    const auto next = threads.team(0).reductions.choose(bytes), same = threads.team(1).reductions.choose(bytes);
    EXPECT_TRUE(next.way == same.way && next.timed == same.timed) << bytes;
  }
}

}  // namespace
}  // namespace stretto::collective
