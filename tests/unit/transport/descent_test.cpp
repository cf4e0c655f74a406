#include "transport/descent/descent.hpp"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "transport/arena/arena.hpp"
#include "transport/cma/cma.hpp"

namespace stretto::transport {
namespace {

// One process whose arena is an ordinary array: what lies in it is read in place, all else by a copy.
class DescentTest : public ::testing::Test {
 protected:
  std::unique_ptr<Transport> make(bool with_arena, bool with_cma) {
    Mapped arenas[] = {{arena_, sizeof arena_}, {arena_, sizeof arena_}};
    int32_t pids[] = {getpid(), getpid()};
    std::unique_ptr<Transport> steps[most_steps];
    if (with_arena) steps[0] = make_arena(arenas, 2, 0);
    if (with_cma) steps[2] = make_cma(pids, 2, 0);
    return make_descent(std::move(steps));
  }
  char arena_[4096] = {};
  char outside_[64] = {};
};

TEST_F(DescentTest, EachBufferIsReadByTheFirstThatReachesIt) {
  auto all = make(true, true);
  strcpy(arena_ + 100, "in place");
  strcpy(outside_, "by a copy");
  Window in = all->window(arena_ + 100), out = all->window(outside_);
  EXPECT_EQ(mechanism_of(in), Mechanism::arena);
  EXPECT_EQ(mechanism_of(out), Mechanism::address);
  char scratch[16];
  const void* data;
  ASSERT_TRUE(all->get(1, in, {}, 0, 9, scratch, &data).ok());
  EXPECT_EQ(data, arena_ + 100);
  EXPECT_EQ(all->place_at(1, in, 3, 4), arena_ + 103);
  EXPECT_EQ(all->place_at(1, out, 0, 4), nullptr);
  Status copied = all->get(1, out, {}, 0, 10, scratch, &data);
  if (copied.detail == EPERM || copied.detail == ENOSYS) GTEST_SKIP() << "cross-memory attach is denied here";
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(data, scratch);
  EXPECT_STREQ(scratch, "by a copy");
}

TEST_F(DescentTest, WhatNoStepReachesHasNoWindow) {
  auto arena = make(true, false), copies = make(false, true);
  EXPECT_EQ(arena->window(outside_).base, 0u);
  char scratch[4];
  const void* data;
  EXPECT_EQ(copies->get(1, arena->window(arena_), {}, 0, 4, scratch, &data).code, Code::refused);
  EXPECT_EQ(arena->get(1, copies->window(outside_), {}, 0, 4, scratch, &data).code, Code::refused);
  EXPECT_EQ(arena->get(1, arena->window(arena_ + 4000), {}, 90, 7, scratch, &data).code, Code::refused) << "beyond the arena";
  EXPECT_TRUE(arena->reach().writes(arena->window(arena_)));
  EXPECT_FALSE(copies->reach().writes(copies->window(outside_)));
  EXPECT_EQ(make(false, false), nullptr);
}

TEST(Window, EarlierKeepsItsMechanism) {
  Window window = earlier(tagged(Mechanism::arena, 100), 5000);
  EXPECT_EQ(mechanism_of(window), Mechanism::arena);
  EXPECT_EQ(untagged(window.base + 5000), 100u);
  EXPECT_EQ(earlier({}, 5000).base, 0u) << "none stays none";
}

TEST(Window, ReachIsWhatAllHave) {
  Reach all = Reach::mapping(Mechanism::arena) | Reach::reading(Mechanism::address);
  Reach copies = Reach::reading(Mechanism::address);
  Window in = tagged(Mechanism::arena, 0), out = tagged(Mechanism::address, 4096);
  EXPECT_TRUE(all.reads(in) && all.writes(in) && all.reads(out));
  EXPECT_FALSE(all.writes(out) || (all & copies).reads(in) || all.unmapped().writes(in) || !all.unmapped().gives(in) ||
               all.gives(out) || all.reads({}));
}

}  // namespace
}  // namespace stretto::transport
