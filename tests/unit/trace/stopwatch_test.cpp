#include "trace/stopwatch.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace stretto::trace {
namespace {

// Each test in a thread of its own: the stopwatch belongs to the thread.
template <class Body>
void in_fresh_thread(Body body) {
  std::thread(body).join();
}

void busy(uint64_t amount) {
  for (uint64_t begin = ticks(); ticks() - begin < amount;) cpu_relax();
}

// As no call of MPI, an empty one may end at the tick at which it began.
uint64_t short_call(uint32_t kind) {
  Timing timing(kind);
  busy(20);
  return timing.stop();
}

uint64_t long_call(uint32_t kind, uint64_t amount) {
  Timing timing(kind);
  takes_long();
  busy(amount);
  return timing.stop();
}

TEST(Stopwatch, LongCallsAreMeasured) {
  in_fresh_thread([] {
    for (int i = 0; i < 200; ++i) EXPECT_GE(long_call(0, 100000), 100000u);
  });
}

TEST(Stopwatch, LongCallsDoNotSpeakForShortOnes) {
  in_fresh_thread([] {
    EXPECT_GE(long_call(0, 50'000'000), 50'000'000u);  // the very first, as the one that makes a communicator
    uint64_t total = 0;
    for (int i = 0; i < 1000; ++i) total += short_call(0);
    EXPECT_LT(total, 50'000'000u);
    EXPECT_GT(total, 0u);
  });
}

TEST(Stopwatch, OneInterruptedSampleCountsLittle) {
  in_fresh_thread([] {
    for (int i = 0; i < 65; ++i) short_call(0);
    uint64_t usual = stopwatch.typical[0];
    while (stopwatch.calls % Stopwatch::sample_every != 0) short_call(0);
    Timing timing(0);
    busy(10'000'000);
    EXPECT_GE(timing.stop(), 10'000'000u);
    EXPECT_LE(stopwatch.typical[0], 4 * usual + 1000);
  });
}

TEST(Stopwatch, EveryCallIsTimedWhereItIsAskedFor) {
  time_every_call();
  in_fresh_thread([] {
    for (int i = 0; i < 100; ++i) {
      short_call(0);
      Timing timing(0);
      busy(1'000'000);
      EXPECT_GE(timing.stop(), 1'000'000u) << "what the short call before it took";
    }
  });
  Stopwatch::unsampled = Stopwatch::sample_every - 1;
}

TEST(Stopwatch, KindsAreTimedApart) {
  in_fresh_thread([] {
    short_call(0);
    EXPECT_GT(stopwatch.typical[0], 0u);
    EXPECT_EQ(stopwatch.typical[1], 0u);
    short_call(1);  // has no sample yet, so it is measured
    EXPECT_GT(stopwatch.typical[1], 0u);
  });
}

TEST(Stopwatch, CallsNest) {
  in_fresh_thread([] {
    Timing outer(0);
    takes_long();
    busy(1'000'000);
    short_call(1);
    EXPECT_GE(outer.stop(), 1'000'000u);
    EXPECT_EQ(stopwatch.begin, 0u);
    EXPECT_FALSE(stopwatch.is_long);
  });
}

}  // namespace
}  // namespace stretto::trace
