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
    if (size.begin_call()) {
      found.push_back(i);
      size.agree(ranks * size.own());
      EXPECT_EQ(size.bytes(), ranks * own);
    }
    size.note(own);
  }
  return found;
}

TEST(VaryingSizes, AreAgreedOnMoreAndMoreSeldom) {
  EXPECT_EQ(agreements(10, 4, 200), (std::vector<int>{1, 3, 7, 15, 31, 63, 127, 191}));
  EXPECT_EQ(agreements(1 << 20, 4, 32), (std::vector<int>{1, 3, 7, 15, 23, 31})) << "large ones more often";
}

TEST(VaryingSizes, AreTheMeanOfTheCallsBefore) {
  VaryingSize size;
  EXPECT_FALSE(size.begin_call());
  size.note(100);
  EXPECT_EQ(size.bytes(), 0u);
  EXPECT_TRUE(size.begin_call());
  size.agree(2 * size.own());
  EXPECT_EQ(size.bytes(), 200u);
  size.note(10);
  EXPECT_FALSE(size.begin_call());  // in which this rank has an error: nothing is noted
  EXPECT_TRUE(size.begin_call());
  EXPECT_EQ(size.own(), 10u);
  size.agree(20);
  EXPECT_EQ(size.bytes(), 10u);
}

TEST(VaryingSizes, CountWhatTheOthersDoNotKnow) {
  using collective::Kind;
  std::vector<collective::Piece> pieces = {{nullptr, 1}, {nullptr, 20}, {nullptr, 300}};
  collective::Request request;
  request.root = 1;
  auto count = [&](Kind kind, bool gives) {
    request.kind = kind;
    request.gives = gives ? pieces.data() : nullptr;
    request.gets = gives ? nullptr : pieces.data();
    return moved(request, 3);
  };
  EXPECT_EQ(count(Kind::alltoallv, true), 321u);
  EXPECT_EQ(count(Kind::gatherv, true), 1u);
  EXPECT_EQ(count(Kind::gatherv, false), 0u) << "a root in place";
  EXPECT_EQ(count(Kind::scatterv, false), 20u) << "what comes from the root";
  EXPECT_EQ(count(Kind::scatterv, true), 0u);
}

}  // namespace
}  // namespace stretto::engine
