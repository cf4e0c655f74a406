// Rounds: where they stand in the rings of their ranks, and how far ahead a rank goes.
#include "collective/patterns/rounds.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <set>

#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

// The first of two ranks gives rounds, the second reads them; both by turns in this thread.
class Ring : public testing::Test {
 protected:
  explicit Ring(size_t cell_bytes = 4096) : threads_(2, cells_of(cell_bytes)) {}

  static TeamOptions cells_of(size_t bytes) {
    TeamOptions options;
    options.cell_bytes = bytes;
    return options;
  }
  void begin(size_t rounds, size_t round_bytes = 1024) {
    request_.count = rounds * round_bytes;
    round_bytes_ = round_bytes;
    for (size_t i = bytes_.size(); i < request_.count; ++i) bytes_.push_back(char(i / 512 * 7 + i));
    giver_.emplace(threads_.team(0), request_, round_bytes);
    reader_.emplace(threads_.team(1), request_, round_bytes);
    giver_->drained_all();
  }
  void give(uint32_t i) {
    ASSERT_LT(giver_->kept_by(i), 0) << i;
    ASSERT_TRUE(giver_->stage(i, bytes_.data()).ok());
    const auto place = giver_->place(i);
    used_.insert({place.cell, place.at});
  }
  void read(uint32_t i) {
    const void* data;
    ASSERT_TRUE(reader_->is_filled(0, i));
    ASSERT_TRUE(reader_->get(0, i, reader_->range(i), &data).ok());
    EXPECT_EQ(std::memcmp(data, &bytes_[i * round_bytes_], round_bytes_), 0) << i;
    reader_->drained(i);
  }

  // Calls whose rounds have all sizes, large ones that stay among them, and a reader that is as far behind as it may.
  void give_and_read_at_random(int calls) {
    std::mt19937 random(3);
    for (int call = 0; call < calls; ++call) {
      const size_t round_bytes = size_t(1) << (random() % 13), odd = random() % 2 ? round_bytes : round_bytes * 3 / 4;
      begin(1 + random() % 30, std::max<size_t>(odd, 1));
      uint32_t given = 0;
      for (uint32_t done = 0; done < giver_->count(); ++done) {
        while (given < giver_->count() && giver_->kept_by(given) < 0) give(given++);
        ASSERT_LT(done, given);
        read(done);
      }
    }
  }

  TeamOfThreads threads_;
  Request request_;
  size_t round_bytes_ = 0;
  std::vector<char> bytes_;
  std::optional<Rounds> giver_, reader_;
  std::set<std::pair<uint32_t, size_t>> used_;  // places
};

TEST_F(Ring, GoesRoundAllOfIt) {
  begin(20);
  for (uint32_t i = 0; i < 16; ++i) {
    give(i);
    read(i);
  }
  EXPECT_EQ(used_.size(), 16u);
  for (uint32_t i = 16; i < 20; ++i) {
    give(i);
    read(i);
  }
  EXPECT_EQ(used_.size(), 16u);
}

TEST_F(Ring, HoldsWhatAPeerIsBehind) {
  begin(40);
  EXPECT_EQ(giver_->most_ahead(), 15u);
  for (uint32_t i = 0; i < 16; ++i) give(i);
  EXPECT_EQ(giver_->kept_by(16), 1);
  read(0);
  give(16);
  EXPECT_EQ(giver_->kept_by(17), 1);
}

TEST_F(Ring, OverwritesNothingThatIsStillRead) {
  give_and_read_at_random(1000);
}

// Large cells, of which only as much is used as pays.
class GrowingRing : public Ring {
 protected:
  GrowingRing() : Ring(64 << 10) {}

  void read_whole(std::deque<std::pair<Rounds, char>>& unread) {
    auto& [rounds, value] = unread.front();
    for (uint32_t i = 0; i < rounds.count(); ++i) {
      const void* found;
      ASSERT_TRUE(rounds.get(0, i, rounds.range(i), &found).ok());
      const char* bytes = static_cast<const char*>(found);
      EXPECT_EQ(std::count(bytes, bytes + 4096, value), 4096);
      rounds.drained(i);
    }
    unread.pop_front();
  }

  // Calls of a page each; the next one may be given before this one is read.
  void go_on(int calls) {
    for (int call = 0; call < calls; ++call) {
      begin(1, 4096);
      give(0);
      read(0);
    }
  }
};

TEST_F(GrowingRing, TakesMoreMemoryTheMoreGoesRound) {
  go_on(8 * 16);
  EXPECT_EQ(used_.size(), 16u);
  go_on(8 * 32);
  EXPECT_EQ(used_.size(), 32u);
  go_on(1000);
  EXPECT_EQ(used_.size(), 64u);
}

TEST_F(GrowingRing, HasRoomForAWholeVectorAtOnce) {
  go_on(3);
  begin(32, 4096);
  for (uint32_t i = 0; i < 32; ++i) give(i);
  read(0);
}

TEST_F(GrowingRing, WaitsWhereItGrowsUntilWhatWasThereIsRead) {
  go_on(16);
  begin(1, 4096);
  give(0);
  request_.count = 32 * 4096;
  Rounds behind(threads_.team(0), request_, 4096);
  EXPECT_EQ(behind.kept_by(0), 1);
  EXPECT_LT(giver_->kept_by(0), 0);  // what came before does not wait for that
  read(0);
  EXPECT_LT(behind.kept_by(0), 0);
}

// The reader is some calls behind, also where the ring grows.
TEST_F(GrowingRing, OverwritesNothingOfCallsThatAreStillRead) {
  std::mt19937 random(5);
  std::deque<std::pair<Rounds, char>> unread;
  std::vector<char> data(4096 * 40);
  char next = 0;
  for (int call = 0; call < 1500; ++call) {
    request_.count = 4096 * (random() % 10 == 0 ? 1 + random() % 40 : 1);
    Rounds given(threads_.team(0), request_, 4096);
    given.drained_all();
    unread.emplace_back(Rounds(threads_.team(1), request_, 4096), ++next);
    std::fill(data.begin(), data.end(), next);
    for (uint32_t i = 0; i < given.count(); ++i) {
      while (given.kept_by(i) >= 0) {
        ASSERT_GT(unread.size(), 1u) << "a call waits for itself";
        read_whole(unread);
      }
      ASSERT_TRUE(given.stage(i, data.data()).ok());
    }
    while (unread.size() > random() % 8) read_whole(unread);
  }
}

TEST_F(GrowingRing, OverwritesNothingThatIsStillRead) {
  give_and_read_at_random(1000);
}

// A call's rounds may be in the cells while the next one's come behind them.
TEST_F(Ring, TakesTheNextVectorBehindTheFormer) {
  begin(6, 2048);
  for (uint32_t i = 0; i < 6; ++i) give(i);
  Rounds behind(threads_.team(0), request_, 1024);
  EXPECT_LT(behind.kept_by(3), 0);
  EXPECT_EQ(behind.kept_by(4), 1);
  read(0);
  EXPECT_LT(behind.kept_by(5), 0);
  EXPECT_EQ(behind.kept_by(6), 1);
}

// Calls without end, each of one round, of which a reader has seen none: the oldest are remembered as one.
TEST_F(Ring, RemembersWhatHasGoneRound) {
  for (int call = 0; call < 200; ++call) {
    begin(1, 64);
    if (giver_->kept_by(0) >= 0) {
      EXPECT_GE(call, 64);
      threads_.team(1).mine().drained.value = giver_->number(0) - 1;
    }
    give(0);
  }
  EXPECT_GT(used_.size(), 64u);
}

TEST_F(Ring, HasNoRoomForLargeRounds) {
  begin(5, 4096);
  for (uint32_t i = 0; i < 4; ++i) give(i);
  EXPECT_EQ(used_.size(), 4u);
  for (const auto& place : used_) EXPECT_LT(place.first, Rounds::staying);
  EXPECT_EQ(giver_->kept_by(4), 1);
  read(0);
  give(4);
  EXPECT_EQ(used_.size(), 4u);
}

TEST_F(Ring, StayingRoundsWaitForWhatWasSwappedThere) {
  for (int r : {0, 1}) threads_.team(r).rounds_swapped = threads_.team(r).rounds = 5;
  begin(1, 4096);
  EXPECT_EQ(giver_->kept_by(0), 1);
  threads_.team(1).mine().drained.value = 5;
  give(0);
  read(0);
}

// A vector of any length has numbers of its own, and who sleeps for one of them tells it from the former call's.
TEST(Parts, HaveNumbersForEveryRound) {
  TeamOfThreads threads(1);
  Team& team = threads.team(0);
  const auto part = Rounds::take_part(team);
  const Rounds rounds(team, part, size_t(100) << 30, cache_line, 1);
  EXPECT_GT(rounds.count(), 1u << 30);
  EXPECT_LE(rounds.number(rounds.count() - 1), team.rounds);
  EXPECT_NE(uint32_t(team.rounds), uint32_t(part.first - 1));
}

// Numbers are compared as far as half of them: ranks that never stage, or never look, must not fall behind by more.
TEST(Parts, AreToldOfNowAndThen) {
  TeamOfThreads threads(2);
  Team& team = threads.team(0);
  for (int call = 0; call < 200'000; ++call) {
    Rounds::take_part(team);
    threads.team(1).mine().drained.value = team.rounds;
  }
  const uint64_t behind = uint64_t(1) << 49;
  EXPECT_GT(team.rounds, behind);
  for (const Signal* signal : {&team.mine().filled, &team.mine().reduced}) EXPECT_LT(team.rounds - signal->value, behind);
  threads.team(1).mine().drained.value = 0;  // what it was seen to have drained counts
  EXPECT_LT(team.not_drained(team.rounds - behind), 0);
}

TEST_F(Ring, KeepsPiecesSideBySide) {
  request_.count = 3000;
  Rounds rounds(threads_.team(0), request_, 1000, 3);
  std::set<size_t> places;
  for (uint32_t i = 0; i < rounds.count(); ++i)
    for (int piece = 0; piece < 3; ++piece) {
      const auto place = rounds.place(i, piece);
      EXPECT_LE(place.at + 1000, size_t(4096));
      places.insert(place.cell * size_t(4096) + place.at);
    }
  ASSERT_EQ(places.size(), 9u);
  for (auto place = places.begin(), next = std::next(place); next != places.end(); ++place, ++next)
    EXPECT_GE(*next - *place, 1000u);
}

}  // namespace
}  // namespace stretto::collective
