#include "transport/make.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "transport/table.hpp"

namespace stretto::transport {
namespace {

TEST(Make, EveryRowOfTheTable) {
  char memory[128];
  int32_t pids[] = {getpid()};
  Team team;
  team.stage = {memory, 128, 64, 2};
  team.pids = pids;
  Mapped arena = {memory, sizeof memory};
  team.arenas = &arena;
  team.size = 1;
  for (const Row& row : table) {
    auto transport = make(row.name, team);
    ASSERT_NE(transport, nullptr) << row.name;
    EXPECT_STREQ(transport->name(), row.name);
    EXPECT_EQ(transport->cell_bytes() != SIZE_MAX, row.staged) << row.name;
  }
}

TEST(Make, UnknownNamesAreNull) {
  for (const char* name : {"", "smoke signals", "Shm", "cma "}) EXPECT_EQ(make(name, {}), nullptr);
}

}  // namespace
}  // namespace stretto::transport
