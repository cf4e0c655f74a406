#include "base/cacheline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace stretto {
namespace {

// Hints: whatever the processor makes of them, memory stays as it is.
TEST(Cacheline, HintsChangeNothing) {
  std::vector<unsigned char> memory(4096);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<unsigned char>(i * 31);
  const std::vector<unsigned char> before = memory;
  for (size_t bytes : {0, 1, 64, 65, 4000}) {
    prefetch_for_write(memory.data() + 7, bytes);
    offer(memory.data() + 7, bytes);
  }
  EXPECT_TRUE(std::equal(memory.begin(), memory.end(), before.begin()));
}

TEST(Cacheline, RoundsUp) {
  EXPECT_EQ(round_up(0, 64), 0u);
  EXPECT_EQ(round_up(1, 64), 64u);
  EXPECT_EQ(round_up(64, 64), 64u);
  EXPECT_EQ(round_up(65, 64), 128u);
}

}  // namespace
}  // namespace stretto
