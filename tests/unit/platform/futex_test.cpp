#include "platform/futex.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <new>
#include <thread>

#include "base/clock.hpp"
#include "unit/platform/child.hpp"
#include "unit/platform/deny.hpp"

namespace stretto::platform {
namespace {

using namespace stretto::testing;

constexpr uint64_t second = 1'000'000'000;

TEST(Futex, ReturnsAtOnceWhenTheWordDiffers) {
  std::atomic<uint32_t> word{1};
  uint64_t begin = now_ns();
  futex_wait(&word, 0, 60 * second);
  EXPECT_LT(now_ns() - begin, 30 * second);
}

TEST(Futex, ReturnsAfterTheTimeout) {
  std::atomic<uint32_t> word{0};
  uint64_t begin = now_ns();
  while (now_ns() - begin < second / 100) futex_wait(&word, 0, second / 100);  // ends only if waits end
  SUCCEED();
}

// The word does not change: only the wake-up can end the wait before its timeout.
TEST(Futex, WakesEverySleeper) {
  constexpr int sleepers = 3;
  std::atomic<uint32_t> word{0};
  std::atomic<int> awake{0};
  uint64_t begin = now_ns();
  std::thread threads[sleepers];
  for (auto& thread : threads)
    thread = std::thread([&] {
      futex_wait(&word, 0, 60 * second);
      ++awake;
    });
  while (awake < sleepers) {
    futex_wake_all(&word);
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LT(now_ns() - begin, 30 * second);
}

TEST(Futex, WakesAnotherProcess) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* word = new (page) std::atomic<uint32_t>(0);
  auto* awake = new (static_cast<char*>(page) + 64) std::atomic<uint32_t>(0);
  pid_t child = start_child([&] {
    uint64_t begin = now_ns();
    futex_wait(word, 0, 50 * second);
    CHILD_REQUIRE(now_ns() - begin < 30 * second);
    awake->store(1);
    return 0;
  });
  while (awake->load() == 0 && waitpid(child, nullptr, WNOHANG) == 0) {
    futex_wake_all(word);
    std::this_thread::yield();
  }
  EXPECT_EQ(awake->load(), 1u);
  munmap(page, 4096);
}

TEST(Futex, NapsWhereTheSystemCallIsDenied) {
  int code = exit_code_of([] {
    if (!deny({SYS_futex}, EPERM)) return child_skipped;
    std::atomic<uint32_t> word{0};
    uint64_t begin = now_ns();
    futex_wait(&word, 0, 60 * second);
    CHILD_REQUIRE(now_ns() - begin >= 10'000);      // it slept rather than spin
    CHILD_REQUIRE(now_ns() - begin < 30 * second);  // and looks again soon
    futex_wake_all(&word);
    return 0;
  });
  if (code == child_skipped) GTEST_SKIP() << "seccomp filters cannot be installed";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace stretto::platform
