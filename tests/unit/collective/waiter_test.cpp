#include "collective/waiter.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace stretto::collective {
namespace {

constexpr WaitPolicy spinning{.looks = 1, .spins = UINT32_MAX, .patience_ns = 0, .fenced = false};
constexpr WaitPolicy yielding{.looks = 1, .spins = 1, .patience_ns = UINT64_MAX};
constexpr WaitPolicy sleeping{.looks = 1, .spins = 1, .patience_ns = 0};

TEST(Reached, ComparesAlsoJustBelowZero) {
  EXPECT_TRUE(reached(5, 5));
  EXPECT_TRUE(reached(6, 5));
  EXPECT_FALSE(reached(4, 5));
  EXPECT_TRUE(reached(0, uint64_t(0) - 3));
  EXPECT_FALSE(reached(0, uint64_t(1) << 31));
  EXPECT_FALSE(reached(0, (uint64_t(1) << 32) + 6));
}

// Whoever only spins or only yields still drives progress and notices deaths.
TEST(Waiter, AttendsWhateverThePolicy) {
  for (WaitPolicy policy : {spinning, yielding, sleeping}) {
    Signal never;
    int driven = 0;
    WaitHooks hooks;
    hooks.context = &driven;
    hooks.progress = [](void* context) { ++*static_cast<int*>(context); };
    hooks.alive = [](void*, int) { return false; };
    EXPECT_EQ(Waiter(policy, hooks).until(never, 1, 2).code, Code::peer_lost);
    EXPECT_GT(driven, 10);
  }
}

// A rank that has waited for long burns no core.
TEST(Waiter, SleepsWhenItsPatienceIsAtAnEnd) {
  for (WaitPolicy policy : {WaitPolicy::dedicated(), WaitPolicy::dedicated(true), WaitPolicy::oversubscribed()}) {
    Signal signal;
    std::thread late([&] {
      bool sleeps = false;
      for (int i = 0; i < 2000 && !(sleeps = signal.sleepers.load() != 0); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_TRUE(sleeps);
      Waiter(policy, {}).announce(signal, 1);
    });
    EXPECT_TRUE(Waiter(policy, {}).until(signal, 1, 0).ok());
    late.join();
  }
}

// While there is a window of one-sided communication, which other ranks may be waiting for, MPI is driven without a pause.
TEST(Waiter, NeverSleepsWhileThereAreWindows) {
  std::atomic<int32_t> early_sleepers{0};
  const std::atomic<int32_t> windows{1};
  for (const WaitPolicy& policy : {sleeping, WaitPolicy::in_turns(early_sleepers, 5)}) {
    Signal signal;
    WaitHooks hooks;
    hooks.windows = &windows;
    hooks.context = &signal;
    hooks.progress = [](void* context) {
      static int driven = 0;
      if (++driven % 200'000 == 0) static_cast<Signal*>(context)->value = 1;
    };
    std::atomic<bool> waits{true};
    std::thread waiting([&] {
      EXPECT_TRUE(Waiter(policy, hooks).until(signal, 1, 0).ok());
      waits = false;
    });
    bool slept = false;
    while (waits) {
      slept = slept || signal.sleepers.load() != 0;
      std::this_thread::yield();
    }
    waiting.join();
    EXPECT_FALSE(slept);
  }
}

// The first look after the CPU has been offered comes before that: MPI may offer it once more, for nothing.
TEST(Waiter, LooksOnceMoreBeforeItDrivesForWindows) {
  const std::atomic<int32_t> windows{1};
  for (const uint32_t further : {1u, 2u, 3u}) {
    Signal signal;
    uint32_t looks = 0, driven = 0;
    WaitHooks hooks;
    hooks.windows = &windows;
    hooks.context = &driven;
    hooks.progress = [](void* context) { ++*static_cast<uint32_t*>(context); };
    const WaitPolicy policy = WaitPolicy::oversubscribed();
    EXPECT_TRUE(Waiter(policy, hooks).until_any([&] { return ++looks > policy.looks + further; }, signal, 1, 0).ok());
    EXPECT_EQ(driven, further - 1);
  }
}

// Where a yield gives nobody the CPU: as many sleep early as there are more ranks than CPUs, and are counted while they do.
TEST(Waiter, SleepsInTurns) {
  Signal signal;
  std::atomic<int32_t> early_sleepers{0};
  const WaitPolicy policy = WaitPolicy::in_turns(early_sleepers, 2);
  const auto wait = [&] { EXPECT_TRUE(Waiter(policy, {}).until(signal, 1, 0).ok()); };
  std::thread ranks[] = {std::thread(wait), std::thread(wait), std::thread(wait)};
  bool all_sleep = false;  // the third when its patience is at an end
  for (int i = 0; i < 2000 && !(all_sleep = signal.sleepers.load() == 3); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(all_sleep);
  EXPECT_EQ(early_sleepers.load(), 2);
  Waiter(policy, {}).announce(signal, 1);
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(early_sleepers.load(), 0);
  WaitHooks hooks;
  hooks.alive = [](void*, int) { return false; };
  EXPECT_EQ(Waiter(policy, hooks).until(signal, 2, 1).code, Code::peer_lost);
  EXPECT_EQ(early_sleepers.load(), 0);
}

TEST(Waiter, SeesWhatWasStoredBefore) {
  for (WaitPolicy policy : {spinning, yielding, sleeping, WaitPolicy::dedicated()}) {
    Signal ping, pong;
    int data = 0, sum = 0;
    std::thread peer([&] {
      Waiter waiter(policy, {});
      for (uint32_t i = 1; i <= 200; ++i) {
        EXPECT_TRUE(waiter.until(ping, i, 0).ok());
        sum += data;
        waiter.announce(pong, i);
      }
    });
    Waiter waiter(policy, {});
    for (uint32_t i = 1; i <= 200; ++i) {
      data = int(i);
      waiter.announce(ping, i);
      EXPECT_TRUE(waiter.until(pong, i, 1).ok());
    }
    peer.join();
    EXPECT_EQ(sum, 200 * 201 / 2);
  }
}

// Of several signals one is slept on; what comes by another is seen all the same.
TEST(Waiter, WaitsForAnyOfSeveral) {
  for (WaitPolicy policy : {spinning, yielding, sleeping}) {
    Signal never, other;
    std::thread peer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      Waiter(policy, {}).announce(other, 1);
    });
    const auto ready = [&] { return reached(other.value.load(std::memory_order_acquire), 1); };
    EXPECT_TRUE(Waiter(policy, {}).until_any(ready, never, 1, 0).ok());
    EXPECT_TRUE(ready());
    peer.join();
    WaitHooks hooks;
    hooks.alive = [](void*, int) { return false; };
    EXPECT_EQ(Waiter(policy, hooks).until_any([] { return false; }, never, 1, 3).code, Code::peer_lost);
  }
}

// Who leaves its thread to others goes on by what it waits for, not by the signal alone.
TEST(Waiter, SuspendsUntilAnythingMakesItReady) {
  struct Others : Suspension {
    void suspend(const Wait& wait) override {
      EXPECT_FALSE(wait.is_over());
      came = ++turns == 3;
      EXPECT_EQ(wait.is_over(), came);
    }
    void until_done(bool (*)(void*), void*) override { ADD_FAILURE() << "there is a signal"; }
    int turns = 0;
    bool came = false;
  } others;
  Signal never;
  Waiter waiter;
  waiter.begin_beside(&others);
  EXPECT_TRUE(waiter.until_any([&] { return others.came; }, never, 1, 0).ok());
  EXPECT_EQ(others.turns, 3);
}

TEST(Waiter, ReportsTheDead) {
  Signal never;
  int asked = 0;
  WaitHooks hooks;
  hooks.context = &asked;
  hooks.alive = [](void* context, int rank) {
    ++*static_cast<int*>(context);
    return rank != 3;
  };
  Waiter waiter({1, 1, true}, hooks);
  Status status = waiter.until(never, 1, 3);
  EXPECT_EQ(status.code, Code::peer_lost);
  EXPECT_EQ(status.detail, 3);
  EXPECT_EQ(asked, 1);
}

TEST(Waiter, TakesTheLastWordOfTheDead) {
  Signal signal;
  WaitHooks hooks;
  hooks.context = &signal;
  hooks.alive = [](void* context, int) {
    Waiter().announce(*static_cast<Signal*>(context), 1);  // announced, then died
    return false;
  };
  EXPECT_TRUE(Waiter({.looks = 1, .spins = 1, .patience_ns = 1}, hooks).until(signal, 1, 0).ok());
}

// What is waited for may come of nothing but that.
TEST(Waiter, DrivesProgress) {
  struct Driven {
    Signal signal;
    int times = 0;
  } driven;
  WaitHooks hooks;
  hooks.context = &driven;
  hooks.progress = [](void* context) {
    auto& own = *static_cast<Driven*>(context);
    if (++own.times == 3) Waiter().announce(own.signal, 1);
  };
  EXPECT_TRUE(Waiter({.looks = 1, .spins = 1, .patience_ns = 1}, hooks).until(driven.signal, 1, 0).ok());
  EXPECT_GE(driven.times, 3);
}

}  // namespace
}  // namespace stretto::collective
