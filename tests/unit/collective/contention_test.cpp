#include "collective/contention.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "collective/waiter.hpp"
#include "unit/platform/child.hpp"

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

TEST(Work, IsTheTimeOutsideWaits) {
  Work work;
  EXPECT_EQ(work.so_far(5 * ms), 0u);
  work.go_on(10 * ms);
  EXPECT_EQ(work.so_far(13 * ms), 3 * ms);
  EXPECT_EQ(work.so_far(9 * ms), 0u);  // its clock is a little ahead
  work.pause(14 * ms);
  work.pause(20 * ms);
  EXPECT_EQ(work.so_far(30 * ms), 4 * ms);
  work.go_on(40 * ms);
  EXPECT_EQ(work.so_far(41 * ms), 5 * ms);
}

// One of three ranks; the others wait from the beginning.
class OffersTest : public ::testing::Test {
 protected:
  OffersTest() { crowd_ = {&contention_, &works_[0], {{&works_[1], {}}, {&works_[2], {}}}}; }
  // A yield that takes a turn of somebody; what the wait is told.
  bool lose_turn() {
    Offers offers(&crowd_, now_ns());
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * Offers::turn_ns));
    const bool others = offers.add();
    EXPECT_TRUE(offers.took_turn());
    offers.end();
    return others;
  }

  Contention contention_;
  Work works_[3];
  Crowd crowd_;
};

TEST_F(OffersTest, FindOthersWhereAllRanksWait) {
  EXPECT_FALSE(lose_turn());  // whose, is looked at from now on
  EXPECT_TRUE(contention_.is_suspected());
  EXPECT_FALSE(contention_.is_known(now_ns()));
  EXPECT_TRUE(lose_turn());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(lose_turn());
  EXPECT_TRUE(contention_.is_known(now_ns()));
}

TEST_F(OffersTest, FindNobodyWhereARankWorks) {
  works_[2].go_on(now_ns());
  for (int i = 0; i < 5; ++i) {
    contention_.suspect();
    EXPECT_FALSE(lose_turn());
  }
  EXPECT_FALSE(contention_.is_known(now_ns()));
}

// One that did not wait but has had no CPU, as others had it, has not used the turn; one whose CPU time cannot be told may have.
TEST_F(OffersTest, FindOthersWhereARankWorksWithoutACpu) {
  const pid_t stopped = testing::start_child([]() -> int {
    for (;;) pause();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it has none of it left to do
  works_[2].go_on(now_ns());
  for (const bool told : {false, true}) {
    crowd_.others[1].clock = told ? platform::CpuClock(stopped) : platform::CpuClock();
    contention_.suspect();
    EXPECT_EQ(lose_turn(), told);
  }
  kill(stopped, SIGKILL);
  EXPECT_EQ(testing::finish_child(stopped), 128 + SIGKILL);
}

TEST_F(OffersTest, FindOthersAmongManyRanks) {
  Work many[2 * Deeds::most_clocks];
  crowd_.others.clear();
  for (const Work& work : many) crowd_.others.push_back({&work, {}});
  contention_.suspect();
  EXPECT_TRUE(lose_turn());
  for (Work* works : {&many[0], &many[2 * Deeds::most_clocks - 1]}) {
    works->go_on(now_ns());
    EXPECT_FALSE(lose_turn());
    works->pause(now_ns());
    contention_.suspect();
    EXPECT_TRUE(lose_turn());
  }
}

TEST_F(OffersTest, TellWhetherTheRankWaits) {
  const uint64_t before = now_ns();
  works_[0].go_on(before);
  {
    Offers offers(&crowd_, before + 5 * ms);
    EXPECT_EQ(works_[0].so_far(before + 9 * ms), 5 * ms);
  }
  EXPECT_EQ(works_[0].so_far(before + 9 * ms), 9 * ms);  // it has not yielded
  {
    Offers offers(&crowd_, before);
    offers.end_asleep();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(works_[0].so_far(before + 20 * ms), 20 * ms);
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
  Work work;
  const Crowd crowd{&contention, &work, {}};
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
