#include "platform/ancestry.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "platform/parse.hpp"
#include "unit/platform/child.hpp"

namespace stretto::platform {
namespace {

TEST(AncestorNamed, IsTheNearest) {
  char text[64];
  std::string own(read_text("/proc/self/comm", text, sizeof text));
  own.pop_back();  // the newline
  const char* names[] = {"no such command", own.c_str(), nullptr};
  pid_t test = getpid();
  int code = stretto::testing::exit_code_of([&] {
    CHILD_REQUIRE(ancestor_named(names) == test);
    pid_t child = getpid();
    return stretto::testing::exit_code_of([&] {
      CHILD_REQUIRE(ancestor_named(names) == child);  // a fork keeps its command name
      return 0;
    });
  });
  EXPECT_EQ(code, 0);
}

TEST(AncestorNamed, NobodyIsZero) {
  const char* unknown[] = {"no such command", nullptr};
  const char* nothing[] = {nullptr};
  EXPECT_EQ(ancestor_named(unknown), 0);
  EXPECT_EQ(ancestor_named(nothing), 0);
}

}  // namespace
}  // namespace stretto::platform
