#include "collective/contention.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "collective/waiter.hpp"

namespace stretto::collective {
namespace {

constexpr uint64_t ms = 1'000'000;

TEST(Contention, IsKnownOnceTurnsAreLostAgainAndAgain) {
  Contention contention;
  contention.note(true, 10 * ms);
  EXPECT_FALSE(contention.is_likely());
  EXPECT_FALSE(contention.is_known(10 * ms));
  contention.note(true, 20 * ms);
  EXPECT_TRUE(contention.is_likely());
  EXPECT_TRUE(contention.is_known(20 * ms));
  EXPECT_FALSE(contention.is_known(30 * ms));  // yields are tried again
  for (int i = 0; i < 20; ++i) contention.note(true, 40 * ms);
  EXPECT_TRUE(contention.is_known(99 * ms));
  EXPECT_FALSE(contention.is_known(101 * ms));
}

TEST(Contention, IsForgottenByYieldsThatCostNoTurn) {
  Contention contention;
  for (int i = 0; i < 20; ++i) contention.note(true, 0);
  for (int i = 0; i < 50; ++i) contention.note(false, 100 * ms);
  EXPECT_FALSE(contention.is_likely());
  contention.note(true, 200 * ms);  // as the first one
  EXPECT_FALSE(contention.is_likely());
  EXPECT_FALSE(contention.is_known(200 * ms));
}

TEST(Contention, MayBeSuspectedNowAndThen) {
  Contention contention;
  for (uint64_t cycle = 0; cycle < 100; ++cycle) {
    contention.note(true, cycle * ms);
    EXPECT_FALSE(contention.is_known(cycle * ms));
    for (int i = 0; i < 12; ++i) contention.note(false, cycle * ms);
  }
}

// A turn that is lost after the rank has done something else says nothing, as do waits without a yield.
TEST(Offers, CountOfWaitsThatFollowOneAnother) {
  for (const bool follows : {false, true}) {
    Contention contention;
    for (int i = 0; i < 3; ++i) {
      const uint64_t began = now_ns() - 2 * Contention::turn_ns;
      Offers offers(&contention, began, follows ? began : 0);
      offers.add();
      offers.end();
    }
    EXPECT_EQ(contention.is_likely(), follows);
    for (int i = 0; i < 50; ++i) Offers(&contention, now_ns(), now_ns()).end();
    EXPECT_EQ(contention.is_likely(), follows);
  }
}

// Whoever would yield for ever sleeps where yields are known to cost turns.
TEST(Contention, MakesWaitsSleep) {
  Contention contention;
  const uint64_t in_an_hour = now_ns() + 3'600'000 * ms;
  for (int i = 0; i < 2; ++i) contention.note(true, in_an_hour);
  WaitPolicy policy = WaitPolicy::oversubscribed(&contention);
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
