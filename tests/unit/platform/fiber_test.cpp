#include "platform/fiber.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace stretto::platform {
namespace {

struct Steps {
  Fiber fiber;
  std::vector<int> seen;
};

void three_steps(void* self) {
  auto& steps = *static_cast<Steps*>(self);
  for (int i = 0; i < 3; ++i) {
    steps.seen.push_back(i);
    if (i < 2) steps.fiber.suspend();
  }
}

TEST(Fiber, RunsInSteps) {
  Steps steps;
  ASSERT_TRUE(steps.fiber.reserve());
  EXPECT_TRUE(steps.fiber.ended());
  steps.fiber.begin(three_steps, &steps);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(steps.fiber.ended());
    steps.fiber.resume();
    EXPECT_EQ(steps.seen.size(), size_t(i) + 1);
  }
  EXPECT_TRUE(steps.fiber.ended());
}

TEST(Fiber, StacksAreUsedAgain) {
  Steps steps;
  ASSERT_TRUE(steps.fiber.reserve());
  for (int round = 0; round < 100; ++round) {
    steps.fiber.begin(three_steps, &steps);
    while (!steps.fiber.ended()) steps.fiber.resume();
  }
  EXPECT_EQ(steps.seen.size(), 300u);
}

struct Keeper {
  Fiber fiber;
  double result = 0;
};

// Values in registers and on the stack outlive suspensions.
void keeps_values(void* self) {
  auto& keeper = *static_cast<Keeper*>(self);
  double sum = 0;
  char bytes[20000];
  for (int i = 0; i < 50; ++i) {
    memset(bytes, i, sizeof bytes);
    double root = std::sqrt(double(i));
    keeper.fiber.suspend();
    EXPECT_EQ(bytes[i * 100], char(i));
    sum += root * bytes[19999];
  }
  keeper.result = sum;
}

double expected_sum() {
  double sum = 0;
  for (int i = 0; i < 50; ++i) sum += std::sqrt(double(i)) * i;
  return sum;
}

TEST(Fiber, ManyTakeTurns) {
  std::vector<Keeper> keepers(20);
  for (Keeper& keeper : keepers) {
    ASSERT_TRUE(keeper.fiber.reserve());
    keeper.fiber.begin(keeps_values, &keeper);
  }
  for (bool any = true; any;) {
    any = false;
    for (Keeper& keeper : keepers) {
      if (keeper.fiber.ended()) continue;
      keeper.fiber.resume();
      any = true;
    }
  }
  for (Keeper& keeper : keepers) EXPECT_DOUBLE_EQ(keeper.result, expected_sum());
}

TEST(Fiber, MovesBetweenThreads) {
  Keeper keeper;
  ASSERT_TRUE(keeper.fiber.reserve());
  keeper.fiber.begin(keeps_values, &keeper);
  std::mutex mutex;
  auto resume_all = [&] {
    for (;;) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (keeper.fiber.ended()) return;
      keeper.fiber.resume();
    }
  };
  std::thread first(resume_all), second(resume_all), third(resume_all);
  first.join();
  second.join();
  third.join();
  EXPECT_DOUBLE_EQ(keeper.result, expected_sum());
}

// A fiber that is resumed on another fiber.
TEST(Fiber, Nests) {
  struct Nest {
    Steps inner;
    Fiber outer;
  } nest;
  ASSERT_TRUE(nest.inner.fiber.reserve() && nest.outer.reserve());
  nest.inner.fiber.begin(three_steps, &nest.inner);
  nest.outer.begin(
      [](void* self) {
        auto& n = *static_cast<Nest*>(self);
        while (!n.inner.fiber.ended()) {
          n.inner.fiber.resume();
          n.outer.suspend();
        }
      },
      &nest);
  while (!nest.outer.ended()) nest.outer.resume();
  EXPECT_EQ(nest.inner.seen.size(), 3u);
}

}  // namespace
}  // namespace stretto::platform
