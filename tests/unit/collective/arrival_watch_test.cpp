// What the arrival watch finds where it is known who comes when.
#include "collective/arrival_watch.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "unit/collective/team_of_threads.hpp"

namespace stretto::collective {
namespace {

constexpr int ranks = 3;
constexpr uint64_t unit = 6400;  // of time; stamps keep multiples of 64

// Collective i, to which rank r comes at a time given by `behind`.
template <class Behind>
void collectives(TeamOfThreads& team, uint64_t from, uint64_t count, Behind behind) {
  for (uint64_t i = from; i < from + count; ++i)
    for (int r = 0; r < ranks; ++r) team.team(r).arrivals.note((i + 1) * 100 * unit + behind(i, r) * unit);
}

TEST(ArrivalWatch, FindsSpreadAndWhoIsLast) {
  TeamOfThreads team(ranks);
  collectives(team, 0, 40, [](uint64_t, int r) { return uint64_t(r == 1 ? 5 : r); });
  for (int r = 0; r < ranks; ++r) {
    team.team(r).arrivals.close();
    const trace::ArrivalCell& seen = team.team(r).arrivals.seen();
    EXPECT_EQ(seen.calls, 40u);
    EXPECT_EQ(seen.spread_ticks, 40 * 5 * unit);
    EXPECT_EQ(seen.most_ticks, 5 * unit);
    EXPECT_EQ(seen.behind_ticks, 40 * uint64_t(r == 1 ? 5 : r) * unit);
    EXPECT_EQ(seen.last, r == 1 ? 40u : 0u);
    EXPECT_EQ(seen.repeated, 39u);
    EXPECT_EQ(team.team(r).arrivals.likely_last(), 1);
  }
}

TEST(ArrivalWatch, TrustsNoRankWhereTheLastOneChanges) {
  TeamOfThreads team(ranks);
  collectives(team, 0, 96, [](uint64_t i, int r) { return uint64_t(i % ranks == uint64_t(r) ? 5 : 0); });
  ArrivalWatch& watch = team.team(0).arrivals;
  EXPECT_EQ(watch.likely_last(), ArrivalWatch::nobody);
  collectives(team, 96, 64, [](uint64_t, int r) { return uint64_t(r == 2 ? 5 : 0); });
  EXPECT_EQ(watch.likely_last(), 2);
  collectives(team, 160, 64, [](uint64_t i, int r) { return uint64_t(i % 2 == uint64_t(r) ? 5 : 0); });
  EXPECT_EQ(watch.likely_last(), ArrivalWatch::nobody);
}

TEST(ArrivalWatch, LeavesOutWhatIsNotThere) {
  TeamOfThreads team(ranks);
  for (uint64_t i = 0; i < 3 * arrival_ring; ++i)  // rank 2 never comes
    for (int r = 0; r < 2; ++r) team.team(r).arrivals.note((i + 1) * unit);
  team.team(0).arrivals.close();
  EXPECT_EQ(team.team(0).arrivals.seen().calls, 0u);
  for (uint64_t i = 0; i < arrival_ring; ++i) team.team(2).arrivals.note((i + 1) * unit);  // two passes behind the others
  team.team(2).arrivals.close();
  EXPECT_EQ(team.team(2).arrivals.seen().calls, 0u);
}

// Stamps are told apart over many passes through the ring.
TEST(ArrivalWatch, CountsEveryCollectiveOfALongRun) {
  TeamOfThreads team(ranks);
  constexpr uint64_t count = 100 * arrival_ring;
  collectives(team, 0, count, [](uint64_t, int r) { return uint64_t(r); });
  team.team(0).arrivals.close();
  EXPECT_EQ(team.team(0).arrivals.seen().calls, count);
  EXPECT_EQ(team.team(0).arrivals.seen().spread_ticks, count * 2 * unit);
}

// As far ahead as the ring of exchanges lets a rank be, all is compared, by those who are ahead and those who are behind.
TEST(ArrivalWatch, CountsWhatARankIsFarAheadIn) {
  TeamOfThreads team(ranks);
  constexpr uint64_t count = 20 * arrival_ring;
  for (uint64_t i = 0; i < count + slot_ring; ++i)
    for (int r = 0; r < ranks; ++r) {
      const uint64_t number = r == 0 ? i : i - slot_ring;
      if (number < count) team.team(r).arrivals.note((number + 1) * 100 * unit + uint64_t(r) * unit);
    }
  for (int r = 0; r < ranks; ++r) {
    team.team(r).arrivals.close();
    EXPECT_EQ(team.team(r).arrivals.seen().calls, count) << r;
    EXPECT_EQ(team.team(r).arrivals.likely_last(), ranks - 1);
  }
}

TEST(ArrivalWatch, ThreadsThatRunAheadOfEachOther) {
  TeamOfThreads team(ranks);
  team.run([](Team& mine) {
    for (uint64_t i = 0; i < 1800; ++i) mine.arrivals.note((i + 1) * 100 * unit + uint64_t(mine.rank) * unit);
    mine.arrivals.close();
    return Status::good();
  });
  for (int r = 0; r < ranks; ++r) {
    const trace::ArrivalCell& seen = team.team(r).arrivals.seen();
    EXPECT_LE(seen.calls, 1800u);
    EXPECT_EQ(seen.spread_ticks, seen.calls * 2 * unit);
    EXPECT_EQ(seen.last, r == 2 ? seen.calls : 0u);
  }
}

}  // namespace
}  // namespace stretto::collective
