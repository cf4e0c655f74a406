// Host blocks that are kept for what goes to GPUs: who has one has it alone, they come again, and there is a bound to them.
#include "platform/kept_memory.hpp"

#include <gtest/gtest.h>
#include <string.h>

#include <thread>
#include <vector>

namespace stretto::platform {
namespace {

TEST(KeptMemory, ComesAgain) {
  char* first = take_kept(100 << 10);
  ASSERT_NE(first, nullptr);
  memset(first, 1, 100 << 10);
  char* second = take_kept(100 << 10);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second >= first + (100 << 10) || first >= second + (100 << 10));
  give_back_kept(first);
  EXPECT_EQ(take_kept(112 << 10), first) << "of a similar size";
  give_back_kept(first);
  give_back_kept(second);
}

TEST(KeptMemory, IsNotForShortOnes) {
  EXPECT_EQ(take_kept(0), nullptr);
  EXPECT_EQ(take_kept(least_kept - 1), nullptr);
}

TEST(KeptMemory, TellsOfABlockOnce) {
  int elsewhere = 0;
  EXPECT_EQ(not_yet_locked(&elsewhere).begin, nullptr);
  char* block = take_kept(4 << 20);
  ASSERT_NE(block, nullptr);
  const Pages pages = not_yet_locked(block + 4097);
  EXPECT_EQ(pages.begin, block);
  EXPECT_EQ(pages.bytes, size_t(4) << 20);
  EXPECT_EQ(not_yet_locked(block).begin, nullptr);
  give_back_kept(block);
}

TEST(KeptMemory, ServesThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) {
        const size_t bytes = least_kept << (i % 3);
        char* block = take_kept(bytes);
        ASSERT_NE(block, nullptr);
        for (size_t at = 0; at < bytes; at += 4096) block[at] = char(t);
        for (size_t at = 0; at < bytes; at += 4096) ASSERT_EQ(block[at], char(t));
        give_back_kept(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(KeptMemory, IsBounded) {
  std::vector<char*> taken;
  size_t total = 0;
  while (char* block = take_kept(size_t(64) << 20)) {
    taken.push_back(block);
    total += size_t(64) << 20;
    ASSERT_LE(total, most_kept);
  }
  EXPECT_GE(total, most_kept / 2);
  EXPECT_EQ(take_kept(most_kept + 1), nullptr);
  for (char* block : taken) give_back_kept(block);
  EXPECT_NE(take_kept(size_t(64) << 20), nullptr);
}

}  // namespace
}  // namespace stretto::platform
