#include "collective/contention.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "collective/waiter.hpp"

namespace stretto::collective {
namespace {

constexpr uint64_t ms = 1'000'000;

TEST(Contention, IsKnownForLongerAndLonger) {
  Contention contention;
  contention.suspect();
  EXPECT_TRUE(contention.is_suspected());
  EXPECT_FALSE(contention.is_known(10 * ms));
  contention.note(true, 10 * ms);
  EXPECT_TRUE(contention.is_known(10 * ms));
  EXPECT_FALSE(contention.is_known(11 * ms));  // yields are tried again
  contention.suspect();
  for (int i = 0; i < 20; ++i) contention.note(true, 40 * ms);
  EXPECT_TRUE(contention.is_known(99 * ms));
  EXPECT_FALSE(contention.is_known(101 * ms));
}

TEST(Contention, IsForgottenByYieldsThatCostNoTurn) {
  Contention contention;
  for (int i = 0; i < 20; ++i) contention.note(true, 0);
  for (int i = 0; i < 50; ++i) contention.note(false, 100 * ms);
  EXPECT_FALSE(contention.is_suspected());
  contention.note(false, 100 * ms);
  EXPECT_FALSE(contention.is_suspected());
  EXPECT_FALSE(contention.is_known(100 * ms));
}

class OffersTest : public testing::Test {
 protected:
  OffersTest() {
    crowd_.contention = &contention_;
    EXPECT_TRUE(crowd_.ranks.add(getpid()));
  }
  // A yield that takes a turn of somebody; what the wait is told.
  bool lose_turn() {
    Offers offers(&crowd_, now_ns());
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * Offers::turn_ns));
    const bool others = offers.add();
    EXPECT_TRUE(offers.took_turn());
    offers.end();
    return others;
  }
  // The same, of this process.
  bool compute() {
    const uint64_t until = crowd_.ranks.sum_ns() + 2 * Offers::turn_ns;
    Offers offers(&crowd_, now_ns());
    while (crowd_.ranks.sum_ns() < until) {
    }
    const bool others = offers.add();
    offers.end();
    return others;
  }

  Contention contention_;
  Crowd crowd_;
};

TEST_F(OffersTest, FindOthersWhereRanksHaveUsedNoCpu) {
  EXPECT_FALSE(lose_turn());  // whose, is looked at from now on
  EXPECT_TRUE(contention_.is_suspected());
  EXPECT_FALSE(contention_.is_known(now_ns()));
  EXPECT_TRUE(lose_turn());
  for (int i = 0; i < 4; ++i) lose_turn();
  EXPECT_TRUE(contention_.is_known(now_ns()));
}

// Unless others had the CPU nearly every time.
TEST_F(OffersTest, TakeRanksThatComputeForNoOthers) {
  bool taken = true;
  for (int i = 0; i < 200 && taken; ++i) {
    contention_.suspect();
    taken = compute();
  }
  EXPECT_FALSE(taken);
}

TEST_F(OffersTest, FindNobodyWhereCpuTimeCannotBeTold) {
  crowd_.ranks = {};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(lose_turn());
  EXPECT_FALSE(contention_.is_known(now_ns()));
}

// The awaited rank may have lost its turn.
TEST_F(OffersTest, NoteNothingOfLongWaitsWithoutALostTurn) {
  contention_.suspect();
  for (int i = 0, tries = 0; i < 10 && tries < 10'000; ++tries) {
    const uint64_t began = now_ns();
    Offers offers(&crowd_, began);
    while (now_ns() - began < 2 * Offers::turn_ns) offers.add();
    if (offers.took_turn()) continue;  // this test has
    offers.end();
    ++i;
  }
  EXPECT_TRUE(contention_.is_suspected());
}

TEST_F(OffersTest, NoteNothingOfWaitsThatDoNotYield) {
  contention_.suspect();
  for (int i = 0; i < 50; ++i) Offers(&crowd_, now_ns()).end();
  EXPECT_TRUE(contention_.is_suspected());
  Offers nobody(nullptr, now_ns());
  EXPECT_FALSE(nobody.add());
  nobody.end();
}

// Whoever would yield for ever sleeps where yields are known to cost turns.
TEST(Contention, MakesWaitsSleep) {
  Contention contention;
  const uint64_t in_an_hour = now_ns() + 3'600'000 * ms;
  for (int i = 0; i < 2; ++i) contention.note(true, in_an_hour);
  Crowd crowd;
  crowd.contention = &contention;
  WaitPolicy policy = WaitPolicy::oversubscribed(&crowd);
  policy.patience_ns = UINT64_MAX;
  Signal signal;
  std::thread rank([&] { EXPECT_TRUE(Waiter(policy, {}).until(signal, 1, 0).ok()); });
  bool sleeps = false;
  for (int i = 0; i < 2000 && !(sleeps = signal.sleepers.load() != 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(sleeps);
  Waiter(policy, {}).announce(signal, 1);
  rank.join();
}

}  // namespace
}  // namespace stretto::collective
