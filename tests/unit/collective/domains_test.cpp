#include "collective/domains.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "collective/patterns/by_domain.hpp"
#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

Domains domains_of(const std::vector<int32_t>& ids) {
  Domains domains;
  EXPECT_TRUE(domains.describe(ids.data(), int(ids.size())));
  return domains;
}

TEST(Domains, AreNumberedByTheirFirstRanks) {
  Domains d = domains_of({9, -1, 9, 4, -1});
  ASSERT_EQ(d.count(), 3);
  EXPECT_EQ(d.of(0), 0);
  EXPECT_EQ(d.of(4), 1);
  EXPECT_EQ(d.of(3), 2);
  EXPECT_EQ(d.size(0), 2);
  EXPECT_EQ(d.member(1, 1), 4);
  EXPECT_EQ(d.index(4), 1);
  EXPECT_EQ(d.leader(1), 1);
  EXPECT_EQ(d.leader(1, 4), 4);
  EXPECT_EQ(d.leader(1, 3), 1);
}

TEST(Domains, AllTogetherAreOne) {
  EXPECT_EQ(domains_of({5, 5, 5}).count(), 1);
  EXPECT_EQ(domains_of({5}).count(), 1);
  EXPECT_EQ(Domains().of(7), 0);
}

TEST(Domains, KnowBlocksOfRanks) {
  EXPECT_TRUE(domains_of({1, 1, 0, 0}).aligned());
  EXPECT_TRUE(domains_of({0, 0, 0, 0, 1, 1, 1}).aligned());
  EXPECT_TRUE(domains_of({0, 1, 2}).aligned());
  EXPECT_FALSE(domains_of({0, 0, 0, 1, 1, 1}).aligned());
  EXPECT_FALSE(domains_of({0, 0, 1, 1, 1, 1}).aligned());
  EXPECT_FALSE(domains_of({0, 1, 0, 1}).aligned());
  EXPECT_TRUE(domains_of({0, 0, 0, 1, 1}).contiguous());
  EXPECT_FALSE(domains_of({0, 1, 0}).contiguous());
}

class Combining : public ::testing::Test {
 protected:
  bool may(const std::vector<int32_t>& ids, Op op, Type type, bool any_order = false) {
    TeamOptions options;
    options.domains = ids;
    options.any_order = any_order;
    TeamOfThreads threads(int(ids.size()), options);
    Request request;
    request.op = op;
    request.type = type;
    return combines_by_domain(threads.team(0), request);
  }
};

TEST_F(Combining, KeepsTheBitsOfTheOrderByRank) {
  EXPECT_FALSE(may({0, 0, 0}, Op::sum, Type::i32)) << "one domain";
  EXPECT_TRUE(may({0, 0, 1}, Op::sum, Type::f32));
  EXPECT_FALSE(may({0, 0, 0, 1}, Op::sum, Type::f32));
  EXPECT_FALSE(may({0, 0, 0, 1}, Op::max, Type::f64)) << "of zeros of both signs, and of NaNs, the order decides";
  EXPECT_TRUE(may({0, 1, 0, 1}, Op::prod, Type::u8));
  EXPECT_TRUE(may({0, 1, 0, 1}, Op::lxor, Type::l32));
  EXPECT_FALSE(may({0, 1, 0, 1}, Op::maxloc, Type::f64_i32));
  EXPECT_FALSE(may({0, 0, 1, 1}, Op::user, Type::opaque));
}

TEST_F(Combining, InAnotherOrderOnlyWhereAskedFor) {
  EXPECT_TRUE(may({0, 0, 0, 1}, Op::sum, Type::f32, true));
  EXPECT_FALSE(may({0, 1, 0, 1}, Op::sum, Type::f32, true)) << "ranks that are dealt out";
  EXPECT_FALSE(may({0, 0, 0, 1}, Op::user, Type::opaque, true));
}

}  // namespace
}  // namespace stretto::collective
