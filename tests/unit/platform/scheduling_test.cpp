#include "platform/scheduling.hpp"

#include <gtest/gtest.h>

#include "unit/platform/child.hpp"

namespace stretto::platform {
namespace {

TEST(Scheduling, AutogroupsAreRead) {
  EXPECT_EQ(parse_autogroup("/autogroup-25 nice 0\n"), 25u);
  EXPECT_EQ(parse_autogroup("/autogroup-25"), 25u);
  for (const char* text : {"", "25", "/autogroup- nice 0", "/autogroup-2x nice 0", "autogroup-25 nice 0"})
    EXPECT_EQ(parse_autogroup(text), 0u) << text;
}

TEST(Scheduling, GroupsAreInheritedAndSessionsHaveTheirOwn) {
  constexpr uint64_t is_control_group = uint64_t(1) << 63;
  const uint64_t own = scheduling_group();
  EXPECT_EQ(testing::exit_code_of([&] { return scheduling_group() == own ? 0 : 1; }), 0);
  if (own == 0) GTEST_SKIP() << "in no group: where sessions count, this one may be of before they did";
  const bool by_session = (own & is_control_group) == 0;
  EXPECT_EQ(testing::exit_code_of([&] { return setsid() > 0 && (scheduling_group() != own) == by_session ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace stretto::platform
