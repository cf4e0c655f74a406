// When ranks agree on the size of blocks that vary, and on what.
#include "engine/varying_size.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stretto::engine {
namespace {

// The calls, counted from 0, in which ranks that each move `own` bytes agree.
std::vector<int> agreements(uint64_t own, uint64_t ranks, int calls) {
  VaryingSize size;
  std::vector<int> found;
  for (int i = 0; i < calls; ++i) {
    if (!size.comes_due(own)) continue;
    found.push_back(i);
    size.agree(ranks * size.own());
    EXPECT_EQ(size.bytes(), ranks * own);
  }
  return found;
}

TEST(VaryingSizes, AreAgreedOnMoreAndMoreSeldom) {
  EXPECT_EQ(agreements(10, 4, 150), (std::vector<int>{0, 2, 6, 14, 30, 62, 126}));
  EXPECT_EQ(agreements(1 << 20, 4, 32), (std::vector<int>{0, 2, 6, 14, 22, 30})) << "large ones more often";
}

TEST(VaryingSizes, AreTheMeanOfTheCallsSince) {
  VaryingSize size;
  EXPECT_EQ(size.bytes(), 0u);
  EXPECT_TRUE(size.comes_due(100));
  size.agree(size.own());
  EXPECT_FALSE(size.comes_due(10));
  EXPECT_EQ(size.bytes(), 100u);
  EXPECT_TRUE(size.comes_due(30));
  EXPECT_EQ(size.own(), 40u);
  size.agree(80);
  EXPECT_EQ(size.bytes(), 40u);
}

}  // namespace
}  // namespace stretto::engine
