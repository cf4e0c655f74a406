// Every row of the table of algorithms over nodes that gives ranks different parts of a reduction, with ranks placed in every
// way.
#include <gtest/gtest.h>

#include <string>

#include "cluster_of_threads.hpp"
#include "partial_reductions.hpp"

namespace stretto::collective {
namespace {

class EveryPartialClusterReduction : public ::testing::TestWithParam<int> {
 protected:
  const ClusterAlgorithm& row() const { return cluster_algorithms[GetParam()]; }
  void run_case(ClusterOfThreads& ranks, PartialReductions& calls, const PartialCase& c) {
    calls.run_case(ranks.size(), c, [&](auto request_of) {
      ranks.run([&](Cluster& cluster) { return row().run(cluster, request_of(cluster.place.rank)); });
    });
  }
  bool anywhere() const { return row().run == ordered; }  // ranks may be
  PartialReductions calls(size_t max_bytes) const { return {row().name, row().kind, max_bytes}; }
};

TEST_P(EveryPartialClusterReduction, AgreesWithReference) {
  std::vector<std::vector<int>> all = placements;
  all.push_back({0, 0, 0, 0, 0, 1, 0, 1, 2, 2});  // a rail carries for three
  all.push_back({0, 1, 1, 2, 3, 3, 4});
  for (const std::vector<int>& placement : all) {
    ClusterOfThreads ranks(placement);
    if (is_prefix(row().kind) && !anywhere() && !ranks.cluster(0).place.in_order) continue;
    for (size_t most : {200, 5000, 60000}) {
      PartialReductions some = calls(most);
      for (int i = 0; i < in_time(5); ++i) run_case(ranks, some, some.random_case(ranks.size()));
    }
  }
}

TEST_P(EveryPartialClusterReduction, CutsLargeVectors) {
  ClusterOfThreads ranks(placements[2]);
  PartialReductions large = calls(12 << 20);
  for (int i = 0; i < in_time(2); ++i) run_case(ranks, large, large.random_case(ranks.size()));
}

// Compositions do not commute: nodes whose ranks follow one another keep their order, and one row keeps it wherever they are.
TEST_P(EveryPartialClusterReduction, AppliesUsersOperationsInRankOrder) {
  std::vector<std::vector<int>> all = placements;
  all.push_back({0, 1, 1, 2, 3, 3, 4});
  for (const std::vector<int>& placement : all) {
    ClusterOfThreads ranks(placement);
    if (!anywhere() && !ranks.cluster(0).place.in_order) continue;
    PartialReductions some = calls(60000);
    for (int i = 0; i < in_time(8); ++i)
      run_case(ranks, some, some.with_counts({kernels::Op::user, kernels::Type::opaque, 8, {}}, ranks.size()));
  }
}

std::vector<int> rows() {
  std::vector<int> found;
  for (int i = 0; i < cluster_algorithm_count; ++i)
    if (cluster_algorithms[i].kind >= Kind::reduce_scatter) found.push_back(i);
  return found;
}

std::string title(const ::testing::TestParamInfo<int>& info) {
  return std::string(name(cluster_algorithms[info.param].kind)) + "_" + cluster_algorithms[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryPartialClusterReduction, ::testing::ValuesIn(rows()), title);

}  // namespace
}  // namespace stretto::collective
