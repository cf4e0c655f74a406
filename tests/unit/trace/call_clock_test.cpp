#include "trace/call_clock.hpp"

#include <gtest/gtest.h>

namespace stretto::trace {
namespace {

void busy(uint64_t ns) {
  for (const uint64_t begin = now_ns(); now_ns() - begin < ns;) cpu_relax();
}

// What the call adds to the sum, in ns; `timed`: how many were.
double call(Pace& pace, Clocking how, uint64_t takes_ns, int* timed) {
  const CallClock clock(pace, how);
  *timed += clock.is_timed();
  if (takes_ns) busy(takes_ns);
  return double(clock.spent()) * double(coarse.two_steps_ns) / double(coarse.two_steps);
}

class CallClocks : public ::testing::Test {
 protected:
  void SetUp() override {
    const ClockPair start = read_both();
    busy(20'000'000);
    prepare_coarse(start);
    if (coarse.two_steps_ns == 0) GTEST_SKIP() << "no coarse clock";
    coarse.is_cheap = true;  // whatever it costs here
  }
  void TearDown() override { coarse = {}; }
};

TEST_F(CallClocks, TheStepIsTheKernels) {
  EXPECT_GE(coarse.two_steps_ns, 1'000'000u);
  EXPECT_LE(coarse.two_steps_ns, 40'000'000u);
}

TEST_F(CallClocks, EveryCallIsTimedWhereItIsToBe) {
  Pace pace;
  int timed = 0;
  for (int i = 0; i < 1000; ++i) call(pace, Clocking::every_call, 0, &timed);
  EXPECT_EQ(timed, 1000);
}

TEST_F(CallClocks, OfABurstSomeAreTimed) {
  for (const Clocking how : {Clocking::may_wait, Clocking::never_waits}) {
    Pace pace;
    int timed = 0;
    for (int i = 0; i < 10000; ++i) call(pace, how, 0, &timed);
    EXPECT_GE(timed, int(Pace::steady));
    EXPECT_LT(timed, 9000);
  }
}

TEST_F(CallClocks, SparseCallsThatMayWaitAreAllTimed) {
  Pace pace;
  int timed = 0, sparse = 0;
  for (int i = 0; i < 1000; ++i) call(pace, Clocking::may_wait, 0, &timed);
  for (int i = 0; i < 10; ++i) {
    busy(coarse.two_steps_ns);
    call(pace, Clocking::may_wait, 0, &sparse);
  }
  EXPECT_EQ(sparse, 10);
}

// Wherever in a burst a long wait comes, it counts once, and about as long as it took.
TEST_F(CallClocks, NoLongWaitIsMissed) {
  const double long_ns = 4.0 * double(coarse.two_steps_ns);
  for (int place = 0; place < 12; ++place) {
    Pace pace;
    int timed = 0;
    for (int i = 0; i < 200 + place; ++i) call(pace, Clocking::may_wait, 0, &timed);
    const double counted = call(pace, Clocking::may_wait, uint64_t(long_ns), &timed);
    EXPECT_GT(counted, long_ns - double(coarse.two_steps_ns)) << place;
    EXPECT_LT(counted, 3 * long_ns) << place;
  }
}

}  // namespace
}  // namespace stretto::trace
