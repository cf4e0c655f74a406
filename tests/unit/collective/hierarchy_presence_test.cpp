// Allreduce by the nodes that are there: who is late is one answer for all, and the result does not depend on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "cluster_of_threads.hpp"
#include "collective/hierarchy/attendance.hpp"

namespace stretto::collective {
namespace {

using namespace std::chrono_literals;

const std::vector<int> five_nodes = {0, 1, 1, 2, 3, 3, 4};

// Until another's absence has been settled, or, in the one that decides, until all others have come.
void come_last(ClusterOfThreads& ranks, const Cluster& cluster) {
  const Placement& place = cluster.place;
  const int decider = cluster.attended.decider, own = place.node;
  for (int n = 0; n < place.nodes; ++n)
    for (const uint64_t begin = now_ns(); n != own && (own == decider || n == decider); std::this_thread::yield()) {
      if (ranks.mail().has(place.rank_at(n, 0), place.rank_at(own, 0), 0)) break;
      if (now_ns() > begin + 60'000'000'000) return void(ADD_FAILURE() << "node " << n << " sends node " << own << " nothing");
    }
}

// slow: nodes that come later, but in time. What every node's first rank takes for late, as bits.
std::vector<unsigned> attend(ClusterOfThreads& ranks, int last, const std::vector<int>& slow = {}) {
  std::vector<unsigned> found(size_t(ranks.cluster(0).place.nodes), 0);
  ranks.run([&](Cluster& cluster) {
    const int node = cluster.place.node;
    if (!cluster.place.leads(0)) return Status::good();
    if (std::count(slow.begin(), slow.end(), node) > 0) std::this_thread::sleep_for(100ms);
    if (last == node) come_last(ranks, cluster);
    Attendance attendance(cluster, 1000);
    STRETTO_TRY(attendance.agree(true));
    EXPECT_NE(attendance.answer().room, 0u);
    for (int n = 0; n < cluster.place.nodes; ++n) found[size_t(node)] |= unsigned(attendance.answer().is_late(n)) << n;
    EXPECT_EQ(attendance.answer().count(), __builtin_popcount(found[size_t(node)]));
    for (uint32_t number; attendance.pending() > 0; attendance.ended(number)) STRETTO_TRY(cluster.links->any_ended(0, &number));
    return Status::good();
  });
  for (const unsigned one : found) EXPECT_EQ(one, found[0]) << "nodes differ in who is late";
  return found;
}

TEST(Attendance, CallsLateWhoIsMissing) {
  ClusterOfThreads ranks(five_nodes);
  EXPECT_EQ(attend(ranks, 2)[0], 1u << 2);
  EXPECT_EQ(attend(ranks, 4)[0], 1u << 4);
}

TEST(Attendance, WaitsWhereManyAreMissing) {
  ClusterOfThreads ranks(five_nodes);
  EXPECT_EQ(attend(ranks, 3, {1, 2})[0], 1u << 3) << "one may be late of five";
}

TEST(Attendance, AnotherDecidesAfterTheDeciderWasLast) {
  ClusterOfThreads ranks(five_nodes);
  attend(ranks, 0);
  EXPECT_NE(ranks.cluster(0).attended.decider, 0);
  EXPECT_EQ(attend(ranks, 0)[0], 1u << 0);
}

TEST(Attendance, OneWithoutRoomIsSeenByAll) {
  ClusterOfThreads ranks(five_nodes);
  ranks.run([&](Cluster& cluster) {
    if (!cluster.place.leads(0)) return Status::good();
    Attendance attendance(cluster, 1000);
    STRETTO_TRY(attendance.agree(cluster.place.node != 3));
    EXPECT_TRUE(attendance.answer().room == 0 || attendance.answer().is_late(3));
    for (uint32_t number; attendance.pending() > 0; attendance.ended(number)) STRETTO_TRY(cluster.links->any_ended(0, &number));
    return Status::good();
  });
}

using Floats = std::vector<float>;

std::vector<Floats> allreduce(ClusterOfThreads& ranks, Status (*row)(Cluster&, const Request&), const std::vector<Floats>& in,
                              int late) {
  std::vector<Floats> out(in.size(), Floats(in[0].size()));
  ranks.run([&](Cluster& cluster) {
    if (cluster.place.node == late) std::this_thread::sleep_for(30ms);
    Request request;
    request.kind = Kind::allreduce;
    request.type = kernels::Type::f32;
    request.element = 4;
    request.count = in[0].size();
    request.input = in[size_t(cluster.place.rank)].data();
    request.output = out[size_t(cluster.place.rank)].data();
    return row(cluster, request);
  });
  return out;
}

// Bit for bit the result of rsa, whoever is late: the last node too, and the one that decides.
TEST(PresenceOverNodes, ResultDoesNotDependOnWhoIsLate) {
  ClusterOfThreads ranks(five_nodes);
  std::mt19937 random(20261122);
  std::uniform_real_distribution<float> any(-1, 1);
  for (const size_t count : {size_t(3), size_t(1000), size_t(400'000)}) {
    std::vector<Floats> in(five_nodes.size(), Floats(count));
    for (Floats& one : in)
      for (float& value : one) value = any(random);
    const Floats expected = allreduce(ranks, allreduce_rsa, in, -1)[0];
    for (int late = -1; late < 5; ++late)
      for (const Floats& one : allreduce(ranks, allreduce_presence, in, late))
        EXPECT_EQ(std::memcmp(one.data(), expected.data(), count * 4), 0) << count << " elements, node " << late << " late";
  }
}

}  // namespace
}  // namespace stretto::collective
