#include "collective/mates.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "platform/cpus.hpp"

namespace stretto::collective {
namespace {

constexpr int ranks = 4;
constexpr uint64_t turn_of_third = 6002 * Mates::period_ns;

// The board of four ranks; this thread plays the one that moves or stays.
class MatesTest : public ::testing::Test {
 protected:
  MatesTest() : memory_(Board::bytes(ranks) + 64) {
    void* place = memory_.data();
    size_t room = memory_.size();
    board_ = new (std::align(64, Board::bytes(ranks), place, room)) Board;
    const platform::CpuSet allowed = platform::allowed_cpus();
    for (int cpu = 0; cpu < platform::max_cpus; ++cpu)
      if (allowed.has(cpu)) cpus_.push_back(cpu);
  }

  void place(int rank, int cpu) { board_->cpus[rank] = uint16_t(1 + cpu); }
  int place_of(int rank) const { return board_->cpus[rank] - 1; }

  // Where `rank` says that it is after it has waited on `cpu` when it was the turn of number `turn` of those there. (The kernel
  // may take it elsewhere meanwhile, but not again and again.)
  int after_waiting(int rank, int cpu, uint64_t turn) {
    for (int tries = 0; tries < 3; ++tries) {
      Mates mates;
      mates.sit(board_, rank, ranks);
      EXPECT_TRUE(platform::move_to(cpu));
      mates.tell((6000 + turn) * Mates::period_ns);  // 6000: of two and of three
      if (place_of(rank) == cpu) return cpu;
    }
    return place_of(rank);
  }

  std::vector<char> memory_;
  Board* board_;
  std::vector<int> cpus_;
};

TEST_F(MatesTest, OneOfThreeMovesToTheCpuOfOne) {
  if (cpus_.size() < 2) GTEST_SKIP() << "one CPU";
  const platform::CpuSet before = platform::allowed_cpus();
  place(0, cpus_[1]);
  place(1, cpus_[0]);
  place(2, cpus_[0]);
  const int moved = after_waiting(3, cpus_[0], 2);
  EXPECT_NE(moved, cpus_[0]);
  EXPECT_TRUE(cpus_.size() > 2 || moved == cpus_[1]);
  EXPECT_TRUE(platform::allowed_cpus() == before);
}

TEST_F(MatesTest, WhoseTurnItIsNotStays) {
  if (cpus_.size() < 2) GTEST_SKIP() << "one CPU";
  place(0, cpus_[1]);
  place(1, cpus_[0]);
  place(3, cpus_[0]);
  for (uint64_t turn : {0, 2}) EXPECT_EQ(after_waiting(2, cpus_[0], turn), cpus_[0]);
}

TEST_F(MatesTest, OfTwoAndTwoAndOfTwoAndOneNobodyMoves) {
  if (cpus_.size() != 2) GTEST_SKIP() << "not two CPUs";
  place(1, cpus_[1]);
  place(2, cpus_[0]);
  for (uint64_t turn : {0, 1}) EXPECT_EQ(after_waiting(3, cpus_[0], turn), cpus_[0]);
  place(0, cpus_[1]);
  for (uint64_t turn : {0, 1}) EXPECT_EQ(after_waiting(3, cpus_[0], turn), cpus_[0]);
}

TEST_F(MatesTest, NotMoreOftenThanEveryFewMilliseconds) {
  if (cpus_.size() < 2) GTEST_SKIP() << "one CPU";
  Mates mates;
  mates.sit(board_, 3, ranks);
  for (int r = 0; r < 3; ++r) place(r, r == 0 ? cpus_[1] : cpus_[0]);
  EXPECT_TRUE(platform::move_to(cpus_[1]));
  mates.tell(turn_of_third);  // stands well
  EXPECT_TRUE(platform::move_to(cpus_[0]));
  mates.tell(turn_of_third + Mates::period_ns / 2);
  EXPECT_EQ(place_of(3), cpus_[0]);
  mates.tell(turn_of_third + 3 * Mates::period_ns);
  EXPECT_NE(place_of(3), cpus_[0]);
}

TEST_F(MatesTest, NotWhereAnotherThreadHasJustWaited) {
  if (cpus_.size() < 2) GTEST_SKIP() << "one CPU";
  constexpr uint64_t begin = turn_of_third + 6000 * Mates::period_ns;
  for (int r = 0; r < 3; ++r) place(r, r == 0 ? cpus_[1] : cpus_[0]);
  Mates mates;
  mates.sit(board_, 3, ranks);
  std::thread([&] {
    Mates of_another_team;
    of_another_team.sit(board_, 3, ranks);
    of_another_team.tell(begin - 3 * Mates::period_ns);
  }).join();
  EXPECT_TRUE(platform::move_to(cpus_[0]));
  mates.tell(begin);
  EXPECT_EQ(place_of(3), cpus_[0]);
  mates.tell(begin + 3 * Mates::period_ns);
  EXPECT_EQ(place_of(3), cpus_[0]);
  EXPECT_TRUE(platform::move_to(cpus_[0]));
  mates.tell(begin + 3000 * Mates::period_ns);  // for more than ten seconds no other thread has
  EXPECT_NE(place_of(3), cpus_[0]);
}

TEST_F(MatesTest, TeamsTooLargeForTheBoardTellNothing) {
  Mates mates;
  mates.sit(board_, 3, Board::most_seated + 1);
  mates.tell(turn_of_third);
  EXPECT_EQ(board_->cpus[3], 0);
}

}  // namespace
}  // namespace stretto::collective
