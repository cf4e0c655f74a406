// How ranks share CPUs, from what each may use.
#include "engine/sharing.hpp"

#include <gtest/gtest.h>

#include "engine/job.hpp"

namespace stretto::engine {
namespace {

// Members whose CPUs are `count` from 0 on.
void put_on_cpus(Member* members, int ranks, int count) {
  for (int i = 0; i < ranks; ++i) {
    members[i].cpus = {};
    for (int c = 0; c < count; ++c) members[i].cpus.add(c);
  }
}

TEST(Sharing, CrowdedMeansRanksOutnumberCpus) {
  Member members[4] = {};
  for (int i = 0; i < 4; ++i) members[i].cpus.add(i);
  EXPECT_FALSE(find_sharing(members, 4, 0).crowded);
  members[3].cpus = members[2].cpus;
  for (int self = 0; self < 4; ++self) EXPECT_TRUE(find_sharing(members, 4, self).crowded);
  put_on_cpus(members, 4, 4);
  EXPECT_FALSE(find_sharing(members, 4, 0).crowded);
  for (auto& member : members) member.cpu_quota.cpus = 2;
  EXPECT_TRUE(find_sharing(members, 4, 0).crowded);
}

TEST(Sharing, SameCpusAreFewerThanRanks) {
  Member members[4] = {};
  put_on_cpus(members, 4, 2);
  EXPECT_TRUE(find_sharing(members, 4, 1).same_cpus);
  members[3].cpus.add(2);
  EXPECT_FALSE(find_sharing(members, 4, 1).same_cpus);
  put_on_cpus(members, 4, 4);
  for (auto& member : members) member.cpu_quota.cpus = 2;
  EXPECT_FALSE(find_sharing(members, 4, 1).same_cpus) << "crowded by a quota alone";
}

TEST(Sharing, SurplusIsOfThoseWithTheSameCpus) {
  Member members[6] = {};
  put_on_cpus(members, 6, 2);
  for (int self = 0; self < 6; ++self) {
    EXPECT_EQ(find_sharing(members, 6, self).first, 0);
    EXPECT_EQ(find_sharing(members, 6, self).surplus, 4);
  }
  for (int i = 0; i < 6; ++i) members[i].cpus = {}, members[i].cpus.add(i < 2 ? 0 : i < 5 ? 1 : 2);
  const int first[] = {0, 0, 2, 2, 2}, surplus[] = {1, 1, 2, 2, 2};
  for (int self = 0; self < 5; ++self) {
    EXPECT_EQ(find_sharing(members, 6, self).first, first[self]);
    EXPECT_EQ(find_sharing(members, 6, self).surplus, surplus[self]);
  }
  EXPECT_FALSE(find_sharing(members, 6, 4).own_cpus);
  EXPECT_TRUE(find_sharing(members, 6, 5).own_cpus);
  members[5].cpus.add(1);  // partly with others, and all together are more than the CPUs
  EXPECT_EQ(find_sharing(members, 6, 5).first, 0);
  EXPECT_EQ(find_sharing(members, 6, 5).surplus, 3);
  EXPECT_FALSE(find_sharing(members, 6, 5).own_cpus);
  put_on_cpus(members, 6, 6);
  EXPECT_EQ(find_sharing(members, 6, 1).surplus, 0);
  for (auto& member : members) member.cpu_quota.cpus = 2.5;
  EXPECT_EQ(find_sharing(members, 6, 1).surplus, 4);
}

// Not between scheduling groups; nor where it is time that is rationed, not CPUs.
TEST(Sharing, YieldsReachWhoeverIsScheduledTogether) {
  Member members[4] = {};
  put_on_cpus(members, 4, 2);
  EXPECT_TRUE(find_sharing(members, 4, 1).yields_reach);
  members[3].scheduling_group = 7;
  for (int self = 0; self < 4; ++self) EXPECT_FALSE(find_sharing(members, 4, self).yields_reach);
  members[3].scheduling_group = 0;
  for (auto& member : members) member.cpu_quota.cpus = 2;
  EXPECT_FALSE(find_sharing(members, 4, 1).yields_reach);
  for (auto& member : members) member.cpu_quota.cpus = 4;
  EXPECT_TRUE(find_sharing(members, 4, 1).yields_reach);
}

// A quota is of a group: it is shared by all where all are in one.
TEST(Sharing, QuotasOfSeveralGroupsAreNotShared) {
  Member members[4] = {};
  put_on_cpus(members, 4, 4);
  for (auto& member : members) member.cpu_quota.cpus = 1;
  EXPECT_EQ(find_sharing(members, 4, 2).surplus, 3);
  for (int i = 0; i < 4; ++i) members[i].scheduling_group = uint64_t(i) + 1;
  EXPECT_TRUE(find_sharing(members, 4, 2).crowded);
  EXPECT_EQ(find_sharing(members, 4, 2).surplus, 0);
  members[0].cpu_quota.cpus = 0.5;
  EXPECT_TRUE(find_sharing(members, 1, 0).crowded);
  EXPECT_EQ(find_sharing(members, 1, 0).surplus, 0);
}

// As containers have them, each of its own.
TEST(Sharing, EachQuotaIsOfItsGroupAlone) {
  Member members[4] = {};
  put_on_cpus(members, 4, 4);
  for (int i = 0; i < 4; ++i) members[i].cpu_quota = {1, uint64_t(i) + 1}, members[i].scheduling_group = uint64_t(i) + 1;
  EXPECT_FALSE(find_sharing(members, 4, 2).crowded);
  members[3].cpu_quota = members[2].cpu_quota;
  EXPECT_TRUE(find_sharing(members, 4, 0).crowded);
  members[2].cpu_quota.cpus = members[3].cpu_quota.cpus = 2;
  EXPECT_FALSE(find_sharing(members, 4, 0).crowded);
  members[0].cpu_quota = {};
  EXPECT_FALSE(find_sharing(members, 4, 0).crowded);
}

}  // namespace
}  // namespace stretto::engine
