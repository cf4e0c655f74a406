#include "platform/cpu_time.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "unit/platform/child.hpp"

namespace stretto::platform {
namespace {

using namespace stretto::testing;

constexpr uint64_t ms = 1'000'000;

uint64_t used_by(const CpuClock& clock) {
  uint64_t ns = 0;
  return clock.read(&ns) ? ns : 0;
}

int compute_until_killed() {
  for (unsigned i = 0;; ++i) asm volatile("" : : "r"(i));
}

TEST(CpuClock, CountsAllThreads) {
  const CpuClock own(getpid());
  const uint64_t until = used_by(own) + 20 * ms;
  std::thread([&] {
    while (used_by(own) < until) {
    }
  }).join();
  EXPECT_GE(used_by(own), until);
}

TEST(CpuClock, IsThatOfTheProcess) {
  const pid_t other = start_child(compute_until_killed);
  const CpuClock clock(other);
  while (used_by(clock) < 20 * ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(other, SIGKILL);
  EXPECT_EQ(finish_child(other), 128 + SIGKILL);
  uint64_t ns;
  EXPECT_FALSE(clock.read(&ns));
}

TEST(CpuClock, CannotBeReadOfWhoIsNotThere) {
  const pid_t gone = start_child([] { return 0; });
  EXPECT_EQ(finish_child(gone), 0);
  uint64_t ns;
  EXPECT_FALSE(CpuClock(gone).read(&ns));
  EXPECT_FALSE(CpuClock().read(&ns));
}

}  // namespace
}  // namespace stretto::platform
