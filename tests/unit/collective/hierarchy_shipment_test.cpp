// Every row of the table of algorithms over nodes that only moves bytes, against what was to be sent: random sizes, roots and
// places, in place or not, with ranks placed in every way.
#include <gtest/gtest.h>

#include <string>

#include "cluster_of_threads.hpp"
#include "shipments.hpp"

namespace stretto::collective {
namespace {

class EveryClusterShipment : public ::testing::TestWithParam<int> {
 protected:
  const ClusterAlgorithm& row() const { return cluster_algorithms[GetParam()]; }

  void run_random(ClusterOfThreads& ranks, size_t most_bytes) {
    Plan plan = random_plan(row().kind, ranks.size(), random_,
                            [&] { return random_() % 8 == 0 ? 0 : random_() % (random_() % 2 ? 70 : most_bytes + 1); });
    run(ranks, plan);
  }

  void run(ClusterOfThreads& ranks, const Plan& plan) {
    std::vector<std::unique_ptr<Part>> parts;
    for (int r = 0; r < ranks.size(); ++r) parts.push_back(std::make_unique<Part>(plan, r));
    ranks.run([&](Cluster& cluster) { return row().run(cluster, parts[size_t(cluster.place.rank)]->request()); });
    for (int r = 0; r < ranks.size(); ++r)
      EXPECT_TRUE(parts[size_t(r)]->right()) << "rank " << r << " of " << ranks.size() << ", root " << plan.root;
  }

  std::mt19937 random_{20261122};
};

TEST_P(EveryClusterShipment, DeliversWhatWasSent) {
  std::vector<std::vector<int>> all = placements;
  all.push_back({0, 0, 0, 0, 0, 1, 0, 1, 2, 2});  // a rail carries for three
  all.push_back({0, 1, 1, 1, 1, 1});
  for (const std::vector<int>& placement : all) {
    ClusterOfThreads ranks(placement);
    for (size_t most : {40, 40, 200, 3000, 3000, 20000, 20000, 100000}) run_random(ranks, most);
  }
}

// Beyond one slice of every kind, and beyond what nodes pack.
TEST_P(EveryClusterShipment, CutsLargeMessages) {
  for (const std::vector<int>& placement : {placements[0], placements[2], placements[3]}) {
    ClusterOfThreads ranks(placement);
    for (int i = 0; i < 2; ++i) run_random(ranks, gives_each(row().kind) ? 600000 : 3 << 20);
  }
}

// More than what is under way to and from a rank at a time.
TEST_P(EveryClusterShipment, ReachesManyRanks) {
  std::vector<int> placement;
  for (int r = 0; r < 44; ++r) placement.push_back(r < 5 ? 0 : r % 11);
  ClusterOfThreads ranks(placement);
  const bool cut = row().run == alltoall_messages;
  for (size_t most : {100, cut ? 100000 : 3000}) run_random(ranks, most);
}

std::vector<int> rows(bool (*of_kind)(Kind)) {
  std::vector<int> found;
  for (int i = 0; i < cluster_algorithm_count; ++i)
    if (of_kind(cluster_algorithms[i].kind)) found.push_back(i);
  return found;
}

std::string title(const ::testing::TestParamInfo<int>& info) {
  return std::string(name(cluster_algorithms[info.param].kind)) + "_" + cluster_algorithms[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryClusterShipment, ::testing::ValuesIn(rows(is_shipment)), title);

class ShipmentOfSizesToldToGiversAlone : public EveryClusterShipment {};

TEST_P(ShipmentOfSizesToldToGiversAlone, LeavesTheRestOfTheRoom) {
  const size_t piece = Links::sent_unasked;
  for (const std::vector<int>& placement : {placements[0], placements[2], placements[7]}) {
    ClusterOfThreads ranks(placement);
    for (size_t spare : {size_t(1), size_t(1000), piece, 5 * piece + 1})
      for (size_t bytes : {size_t(0), size_t(8), piece - 1, piece, piece + 1, 2 * piece, 9 * piece + 7}) {
        Plan plan = random_plan(row().kind, ranks.size(), random_, [&] { return bytes; });
        plan.in_place.assign(plan.in_place.size(), false);
        plan.spare = bytes > 0 ? spare : 0;  // who gives nothing sends nothing, as in MPI
        run(ranks, plan);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ShipmentOfSizesToldToGiversAlone, ::testing::ValuesIn(rows(told_to_givers_alone)), title);

}  // namespace
}  // namespace stretto::collective
