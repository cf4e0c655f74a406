#include "platform/cpu_time.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "unit/platform/child.hpp"

namespace stretto::platform {
namespace {

using namespace stretto::testing;

constexpr uint64_t ms = 1'000'000;

uint64_t used_by(pid_t pid) {
  CpuTimes times;
  return times.add(pid) ? times.sum_ns() : 0;
}

int compute_until_killed() {
  for (volatile unsigned i = 0;; i = i + 1) {
  }
}

TEST(CpuTimes, AreThoseOfAllThreadsOfAllProcesses) {
  const pid_t other = start_child(compute_until_killed);
  CpuTimes both;
  EXPECT_TRUE(both.add(getpid()));
  EXPECT_TRUE(both.add(other));
  std::thread([] {
    const uint64_t until = used_by(getpid()) + 20 * ms;
    while (used_by(getpid()) < until) {
    }
  }).join();
  while (used_by(other) < 20 * ms) std::this_thread::yield();
  const uint64_t sum = both.sum_ns();
  EXPECT_GE(sum, 40 * ms);
  EXPECT_LE(sum, used_by(getpid()) + used_by(other));
  kill(other, SIGKILL);
  EXPECT_EQ(finish_child(other), 128 + SIGKILL);
  EXPECT_EQ(both.sum_ns(), 0u);  // not to be told any more
}

TEST(CpuTimes, CannotBeToldOfWhoIsNotThere) {
  const pid_t gone = start_child([] { return 0; });
  EXPECT_EQ(finish_child(gone), 0);
  CpuTimes times;
  EXPECT_EQ(times.sum_ns(), 0u);
  EXPECT_FALSE(times.add(gone));
  EXPECT_EQ(times.sum_ns(), 0u);
}

}  // namespace
}  // namespace stretto::platform
