#include "collective/trials.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "collective/algorithms.hpp"
#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

constexpr size_t size = 100'000;
constexpr int calls_of_trial = 10, calls_after_first = 8;

// So many calls, of which either way takes so many ticks: how many went the first way, and how many were timed.
struct Went {
  int first = 0, timed = 0;
};
Went call(Trials<2>& trials, int calls, const uint64_t (&ticks)[2], size_t bytes = size) {
  Went went;
  for (int i = 0; i < calls; ++i) {
    const auto choice = trials.choose(bytes);
    went.first += choice.way == 0;
    went.timed += choice.timed;
    if (choice.timed) trials.note(bytes, choice.way, ticks[choice.way]);
  }
  return went;
}

TEST(Trials, TheFasterWayIsUsed) {
  for (const bool second : {false, true}) {
    Trials<2> trials;
    const uint64_t ticks[] = {second ? 3000u : 1000u, 2000};
    const Went tried = call(trials, calls_of_trial, ticks), then = call(trials, calls_after_first, ticks);
    EXPECT_EQ(tried.first, calls_of_trial / 2);
    EXPECT_EQ(tried.timed, calls_of_trial);
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
  const Went went = call(trials, 100'000, {1000, 1500});
  EXPECT_LE(went.timed, 35 * calls_of_trial);
  EXPECT_EQ(went.first, 100'000 - went.timed / 2);
}

TEST(Trials, AreRarestWhereTheDifferenceIsClear) {
  Trials<2> trials;
  EXPECT_EQ(call(trials, 4000, {3000, 1000}).timed, 2 * calls_of_trial) << "the first alone says little";
}

TEST(Trials, NoticeAChange) {
  Trials<2> trials;
  call(trials, calls_of_trial + calls_after_first, {1000, 5000});
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
    call(trials, calls_of_trial - 1, {usual, 2000});
    EXPECT_EQ(trials.fastest(size), odd == 1 ? 1 : 0);
  }
}

TEST(Trials, EachSizeHasItsOwn) {
  Trials<2> trials;
  call(trials, calls_of_trial, {1000, 2000}, 20'000);
  call(trials, calls_of_trial, {2000, 1000}, 40'000);
  EXPECT_EQ(trials.fastest(17'000), 0);
  EXPECT_EQ(trials.fastest(60'000), 1);
  for (const size_t bytes : {size_t(1), size_t(1) << 45}) EXPECT_TRUE(trials.choose(bytes).timed);
}

TEST(Trials, ThatCannotBeTimedEnd) {
  Trials<2> trials;
  EXPECT_EQ(trials.fastest(size, 1), 1) << "nothing is known";
  call(trials, calls_of_trial + calls_after_first, {1000, 2000});
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

TEST(Trials, WhatIsSettledIsNotTried) {
  Trials<2> trials;
  trials.settle(1);
  const Went went = call(trials, 1000, {1, 2});
  EXPECT_EQ(went.timed, 0);
  EXPECT_EQ(went.first, 0);
}

// Ranks that time calls together must choose alike, whatever happens between those calls.
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
