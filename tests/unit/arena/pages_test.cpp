#include "arena/pages.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace stretto::arena {
namespace {

TEST(Pages, TakesWhatIsAskedForAndMergesWhatComesBack) {
  Pages pages;
  ASSERT_TRUE(pages.open(100));
  bool clean = false;
  PageIndex a = pages.take(10, 1, &clean), b = pages.take(20, 1, &clean), c = pages.take(30, 1, &clean);
  EXPECT_TRUE(clean);
  EXPECT_EQ(pages.used(), 60u);
  pages.give_back(a, false);
  pages.give_back(b, false);
  EXPECT_EQ(pages.idle(), 30u);
  PageIndex both = pages.take(30, 1, &clean);  // a and b are one
  EXPECT_EQ(both, a);
  EXPECT_FALSE(clean);
  EXPECT_EQ(pages.idle(), 0u);
  pages.give_back(c, true);
  EXPECT_EQ(pages.top(), 30u) << "what is clean at the end has never been used";
}

TEST(Pages, BestFit) {
  Pages pages;
  ASSERT_TRUE(pages.open(1000));
  bool clean;
  PageIndex holes[3], sizes[3] = {50, 20, 35};
  for (int i = 0; i < 3; ++i) {
    holes[i] = pages.take(sizes[i], 1, &clean);
    pages.take(1, 1, &clean);
  }
  for (PageIndex hole : holes) pages.give_back(hole, false);
  EXPECT_EQ(pages.take(20, 1, &clean), holes[1]);
  EXPECT_EQ(pages.take(33, 1, &clean), holes[2]);
  EXPECT_EQ(pages.take(36, 1, &clean), holes[0]);
}

TEST(Pages, CleanAndIdleDoNotMix) {
  Pages pages;
  ASSERT_TRUE(pages.open(100));
  bool clean;
  PageIndex a = pages.take(10, 1, &clean), b = pages.take(10, 1, &clean);
  pages.take(1, 1, &clean);
  pages.give_back(a, true);
  pages.give_back(b, false);
  EXPECT_EQ(pages.idle(), 10u);
  EXPECT_EQ(pages.take(10, 1, &clean) == a, clean);
  EXPECT_EQ(pages.next_idle() == no_page, !clean);
}

TEST(Pages, ResizesInPlace) {
  Pages pages;
  ASSERT_TRUE(pages.open(100));
  bool clean;
  PageIndex a = pages.take(10, 1, &clean);
  EXPECT_TRUE(pages.resize(a, 30)) << "into what has never been used";
  PageIndex b = pages.take(10, 1, &clean);
  EXPECT_FALSE(pages.resize(a, 31));
  EXPECT_TRUE(pages.resize(a, 5));
  EXPECT_EQ(pages.idle(), 25u);
  EXPECT_TRUE(pages.resize(a, 20)) << "into what it gave back";
  EXPECT_EQ(pages.idle(), 10u);
  EXPECT_FALSE(pages.resize(b, 71));
  EXPECT_TRUE(pages.resize(b, 70));
}

TEST(Pages, RoomEnds) {
  Pages pages;
  ASSERT_TRUE(pages.open(64));
  bool clean;
  EXPECT_EQ(pages.take(65, 1, &clean), no_page);
  EXPECT_EQ(pages.take(1, 128, &clean), no_page);
  EXPECT_NE(pages.take(64, 1, &clean), no_page);
  EXPECT_EQ(pages.take(1, 1, &clean), no_page);
}

// Against a plain list of who has what: blocks never overlap, are aligned, and the counts are right.
TEST(Pages, RandomAgainstAPlainList) {
  std::mt19937 random(7);
  Pages pages;
  constexpr PageIndex count = 4000;
  ASSERT_TRUE(pages.open(count));
  std::map<PageIndex, PageIndex> blocks;  // first -> length
  uint64_t used = 0;
  for (int step = 0; step < 60'000; ++step) {
    int what = int(random() % 8);
    if (what < 4 || blocks.empty()) {
      PageIndex length = 1 + random() % (random() % 10 == 0 ? 600 : 40), alignment = PageIndex(1) << (random() % 5);
      bool clean;
      PageIndex first = pages.take(length, alignment, &clean);
      if (first == no_page) continue;
      ASSERT_EQ(first % alignment, 0u);
      auto after = blocks.lower_bound(first);
      ASSERT_TRUE(after == blocks.end() || first + length <= after->first);
      ASSERT_TRUE(after == blocks.begin() || std::prev(after)->first + std::prev(after)->second <= first);
      blocks[first] = length;
      used += length;
    } else {
      auto block = std::next(blocks.begin(), long(random() % blocks.size()));
      ASSERT_TRUE(pages.is_block(block->first));
      ASSERT_EQ(pages.length(block->first), block->second);
      if (what == 4) {
        PageIndex wanted = 1 + random() % 80;
        if (!pages.resize(block->first, wanted)) continue;
        used += uint64_t(wanted) - block->second;
        block->second = wanted;
        auto after = std::next(block);
        ASSERT_TRUE(after == blocks.end() || block->first + wanted <= after->first);
      } else {
        used -= block->second;
        pages.give_back(block->first, random() % 2 == 0);
        ASSERT_FALSE(pages.is_block(block->first));
        blocks.erase(block);
      }
    }
    ASSERT_EQ(pages.used(), used);
    ASSERT_LE(used + pages.idle(), count);
    if (step % 5000 == 0) {  // the walk finds them all, in order
      PageIndex at = pages.next_used(0);
      for (auto [first, length] : blocks) {
        ASSERT_EQ(at, first);
        at = pages.next_used(first + length);
      }
      ASSERT_EQ(at, no_page);
    }
  }
  for (auto [first, length] : blocks) pages.give_back(first, false);
  for (PageIndex idle = pages.next_idle(); idle != no_page; idle = pages.next_idle()) pages.now_clean(idle);
  EXPECT_EQ(pages.idle(), 0u);
  EXPECT_EQ(pages.top(), 0u) << "all is one again";
}

}  // namespace
}  // namespace stretto::arena
