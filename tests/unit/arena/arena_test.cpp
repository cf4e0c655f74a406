#include "arena/arena.hpp"

#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace stretto::arena {
namespace {

constexpr size_t KiB = 1024, MiB = 1024 * KiB;

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Status status = arena_.open({64 * MiB, 48 * MiB, 8 * MiB});
    ASSERT_TRUE(status.ok()) << status.what;
  }
  void TearDown() override { arena_.close(); }

  char* take(size_t bytes, size_t alignment = 1) {
    bool zeroed = false;
    auto* block = static_cast<char*>(arena_.allocate(bytes, alignment, &zeroed));
    zeroed_ = zeroed;
    return block;
  }
  // Memory that the object holds.
  size_t resident() const {
    struct stat status;
    return fstat(arena_.view().fd, &status) == 0 ? size_t(status.st_blocks) * 512 : 0;
  }

  Arena arena_;
  bool zeroed_ = false;
};

TEST_F(ArenaTest, BlocksAreAlignedHeldAndUsable) {
  for (size_t alignment : {size_t(1), size_t(64), 4 * KiB, 64 * KiB, 2 * MiB}) {
    char* block = take(100 * KiB + 1, alignment);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % std::max<size_t>(alignment, 4096), 0u);
    EXPECT_TRUE(arena_.holds(block));
    EXPECT_GE(arena_.usable(block), 100 * KiB + 1);
    memset(block, 1, arena_.usable(block));
    EXPECT_TRUE(arena_.release(block));
  }
  EXPECT_EQ(take(8 * MiB, 4 * MiB), nullptr) << "as the arena is not aligned to that";
  EXPECT_FALSE(arena_.holds(nullptr));
  EXPECT_FALSE(arena_.holds(this));
}

TEST_F(ArenaTest, WrongPointersAreNotBlocks) {
  char* block = take(MiB);
  EXPECT_FALSE(arena_.release(block + 1));
  EXPECT_FALSE(arena_.release(block + 4096));
  EXPECT_EQ(arena_.usable(block + 8192), 0u);
  EXPECT_TRUE(arena_.release(block));
  EXPECT_FALSE(arena_.release(block)) << "twice";
}

TEST_F(ArenaTest, WhatSaysZeroedIsZero) {
  std::mt19937 random(3);
  std::vector<std::pair<char*, size_t>> blocks;
  int told = 0;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 2 == 0) {
      size_t bytes = 1 + random() % (2 * MiB);
      char* block = take(bytes);
      if (block == nullptr) continue;
      told += zeroed_;
      if (zeroed_) {
        ASSERT_TRUE(block[0] == 0 && memcmp(block, block + 1, bytes - 1) == 0) << step;
      }
      memset(block, 0x5a, arena_.usable(block));
      blocks.emplace_back(block, bytes);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      ASSERT_TRUE(arena_.release(blocks.back().first));
      blocks.pop_back();
    }
  }
  EXPECT_GT(told, 10);
  for (auto [block, bytes] : blocks) arena_.release(block);
}

TEST_F(ArenaTest, FreedMemoryGoesBackToTheSystem) {
  char* block = take(40 * MiB);
  memset(block, 1, 40 * MiB);
  EXPECT_GE(resident(), 40 * MiB);
  arena_.release(block);
  EXPECT_LE(resident(), 8 * MiB);
  for (int i = 0; i < 200; ++i) {
    char* one = take((1 + i % 7) * MiB);
    memset(one, 1, (1 + i % 7) * MiB);
    arena_.release(one);
    ASSERT_LE(arena_.idle(), 8 * MiB);
    ASSERT_LE(resident(), 18 * MiB);
  }
}

TEST_F(ArenaTest, RoomEndsWithoutErrno) {
  errno = 7;
  EXPECT_EQ(take(49 * MiB), nullptr);
  EXPECT_EQ(take(SIZE_MAX), nullptr);
  EXPECT_EQ(take(SIZE_MAX - 4095), nullptr);
  EXPECT_EQ(take(MiB, size_t(1) << 40), nullptr);
  EXPECT_EQ(errno, 7);
}

// 30 MiB of idle and clean ranges beside one another serve one large block.
TEST_F(ArenaTest, MixedRangesAreMadeOne) {
  std::vector<char*> blocks;
  for (int i = 0; i < 48; ++i) blocks.push_back(take(MiB));
  for (char* block : blocks) memset(block, 1, MiB), arena_.release(block);
  EXPECT_GT(arena_.idle(), 0u);
  char* large = take(47 * MiB);
  ASSERT_NE(large, nullptr);
  memset(large, 2, 47 * MiB);
  arena_.release(large);
}

TEST_F(ArenaTest, PeersSeeTheOwnersBytes) {
  char* block = take(MiB);
  View view = arena_.view();
  ASSERT_GE(view.fd, 0);
  auto* peer = static_cast<char*>(mmap(nullptr, view.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, view.fd, 0));
  ASSERT_NE(peer, MAP_FAILED);
  memset(block, 'x', MiB);
  EXPECT_EQ(peer[block - view.base + MiB - 1], 'x');
  peer[block - view.base] = 'y';
  EXPECT_EQ(block[0], 'y');
  munmap(peer, view.bytes);
  arena_.release(block);
}

// The child sees what was there at the fork, and neither sees what the other writes afterwards.
TEST_F(ArenaTest, ForkSeparates) {
  char *block = take(3 * MiB), *sparse = take(8 * MiB);
  memset(block, 'p', 3 * MiB);
  sparse[5 * MiB] = 's';
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  arena_.before_fork();
  pid_t child = fork();
  if (child != 0) {
    arena_.after_fork_in_parent();
    memset(block, 'q', 3 * MiB);
    sparse[5 * MiB] = 't';
    ASSERT_EQ(write(ready[1], "g", 1), 1);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
    EXPECT_EQ(std::count(block, block + 3 * MiB, 'q'), long(3 * MiB));
    arena_.release(block);
    arena_.release(sparse);
    close(ready[0]), close(ready[1]);
    return;
  }
  arena_.after_fork_in_child();
  char go;
  if (read(ready[0], &go, 1) != 1) _exit(1);
  if (std::count(block, block + 3 * MiB, 'p') != long(3 * MiB)) _exit(2);
  if (sparse[5 * MiB] != 's' || sparse[0] != 0) _exit(3);
  memset(block, 'c', 3 * MiB);
  if (arena_.view().fd >= 0) _exit(4);
  bool zeroed;
  for (int i = 0; i < 100; ++i) {  // the child's own arena works on
    auto* more = static_cast<char*>(arena_.allocate(4 * MiB, 1, &zeroed));
    if (more == nullptr || (zeroed && more[MiB] != 0)) _exit(5);
    memset(more, 'd', 4 * MiB);
    if (!arena_.release(more)) _exit(6);
  }
  if (block[MiB] != 'c' || !arena_.release(block)) _exit(7);
  _exit(0);
}

// A line tells once of forks that have taken long: not a child, of its parent's. (A parent that does not fork after all has
// copied as well.)
TEST(ArenaForks, CopiesThatTakeLongAreTold) {
  const auto said = [](uint64_t untold_ns, bool child) {
    Arena arena;
    Limits limits{64 * MiB, 64 * MiB, 8 * MiB};
    limits.untold_ns = untold_ns;
    EXPECT_TRUE(arena.open(limits).ok());
    bool zeroed;
    void* block = arena.allocate(60 * MiB, 1, &zeroed);
    memset(block, 'f', 60 * MiB);
    if (child) arena.before_fork(), arena.after_fork_in_child();
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) arena.before_fork(), arena.after_fork_in_parent();
    const std::string text = testing::internal::GetCapturedStderr();
    arena.release(block);
    arena.close();
    return text;
  };
  EXPECT_EQ(said(UINT64_MAX, false), "");
  EXPECT_EQ(said(0, true), "");
  const std::string line =
      "stretto: forks of process " + std::to_string(getpid()) + " have copied 0.1 GiB of the arena in all, in ";
  const std::string text = said(0, false);
  EXPECT_EQ(text.rfind(line, 0), 0u) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(ArenaTest, ThreadsGetBlocksOfTheirOwn) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random{unsigned(t)};
      for (int i = 0; i < 300; ++i) {
        size_t bytes = 64 * KiB + random() % MiB;
        bool zeroed;
        auto* block = static_cast<char*>(arena_.allocate(bytes, 64, &zeroed));
        if (block == nullptr) continue;
        memset(block, t, bytes);
        if (random() % 3 == 0 && arena_.resize(block, bytes / 2 + 1)) bytes = bytes / 2 + 1;
        wrong += std::count(block, block + bytes, char(t)) != long(bytes);
        wrong += !arena_.release(block);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(arena_.used(), 0u);
}

TEST_F(ArenaTest, AClosedDescriptorIsNoticed) {
  close(arena_.view().fd);
  EXPECT_LT(arena_.view().fd, 0);
  char* block = take(MiB);
  ASSERT_NE(block, nullptr);  // the memory is still there
  block[0] = 1;
  arena_.release(block);
}

// Beyond RLIMIT_FSIZE, making the object larger would be a deadly signal.
TEST(ArenaLimits, FileSizeLimitIsNoSignal) {
  pid_t child = fork();
  if (child == 0) {
    rlimit limit = {16 * MiB, 16 * MiB};
    setrlimit(RLIMIT_FSIZE, &limit);
    Arena arena;
    _exit(arena.open({uint64_t(1) << 30, MiB, MiB}).ok() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ArenaLimits, SmallerUnderAFileSizeLimit) {
  pid_t child = fork();
  if (child == 0) {
    rlimit limit = {600 * MiB, 600 * MiB};
    setrlimit(RLIMIT_FSIZE, &limit);
    Arena arena;
    bool zeroed;
    if (!arena.open({uint64_t(2) << 30, 600 * MiB, MiB}).ok() || arena.view().bytes != 512 * MiB) _exit(1);
    auto* block = static_cast<char*>(arena.allocate(400 * MiB, 1, &zeroed));
    if (block == nullptr) _exit(2);
    block[399 * MiB] = 1;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stretto::arena
