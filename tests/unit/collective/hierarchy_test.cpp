// Every row of the table of algorithms over nodes against a plain reference, with ranks placed in every way.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <string>

#include "cluster_of_threads.hpp"
#include "reference.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

TEST(Placement, NumbersNodesByTheirFirstRanks) {
  const int names[] = {7, 3, 7, 3, 3};
  Placement place;
  ASSERT_TRUE(place.find(names, 5, 4));
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.node, 1);
  EXPECT_EQ(place.local, 2);
  EXPECT_EQ(place.local_size, 3);
  EXPECT_EQ(place.rails, 2);
  EXPECT_EQ(place.largest, 3);
  EXPECT_FALSE(place.in_order);
  EXPECT_EQ(place.ranks_on(0), 2);
  EXPECT_EQ(place.ranks_on(1), 3);
  EXPECT_EQ(place.rank_at(0, 1), 2);
  EXPECT_EQ(place.rank_at(1, 2), 4);
  EXPECT_EQ(place.rail_of(2), 1);
  EXPECT_EQ(place.rail_of(4), 0) << "only one node has a third rank";
  const int blocks[] = {9, 9, 4, 4, 1};
  ASSERT_TRUE(place.find(blocks, 5, 0));
  EXPECT_TRUE(place.in_order);
  const int back[] = {9, 4, 9};
  ASSERT_TRUE(place.find(back, 3, 0));
  EXPECT_FALSE(place.in_order);
}

struct Case {
  Op op = Op::sum;
  Type type = Type::i32;
  size_t count = 1;
  size_t element = 4;
  int root = 0;
  UserOp user;
};

// What a rank has; in place where `out` is also the input.
struct Buffers {
  Bytes in, out;
  bool in_place = false;
};

class EveryClusterAlgorithm : public ::testing::TestWithParam<int> {
 protected:
  const ClusterAlgorithm& row() const { return cluster_algorithms[GetParam()]; }
  bool reduces() const { return row().kind == Kind::reduce || row().kind == Kind::allreduce; }

  void run_case(ClusterOfThreads& ranks, const Case& c, const std::vector<Bytes>& inputs, const Bytes& expected) {
    std::vector<Buffers> buffers;
    for (const Bytes& input : inputs) {
      bool in_place = random_() % 2;
      buffers.push_back({input, in_place ? input : Bytes(input.size(), 0xa5), in_place});
    }
    ranks.run([&](Cluster& cluster) { return row().run(cluster, request_of(c, cluster.place.rank, buffers)); });
    for (int r = 0; r < ranks.size(); ++r) {
      bool has = row().kind == Kind::allreduce || row().kind == Kind::bcast || (row().kind == Kind::reduce && r == c.root);
      if (!has) continue;
      const Bytes& result = row().kind == Kind::bcast && r == c.root ? buffers[size_t(r)].in : buffers[size_t(r)].out;
      EXPECT_TRUE(result == expected) << row().name << " rank " << r << " of " << ranks.size() << ", count " << c.count
                                      << ", root " << c.root;
    }
  }

  Request request_of(const Case& c, int rank, std::vector<Buffers>& all) {
    Buffers& own = all[size_t(rank)];
    Request request;
    request.kind = row().kind;
    request.op = c.op;
    request.type = c.type;
    request.count = c.count;
    request.element = c.element;
    request.root = c.root;
    request.user = c.user;
    request.ordered = c.user.apply != nullptr;
    request.input = own.in_place ? own.out.data() : own.in.data();
    request.output = own.out.data();
    if (row().kind == Kind::bcast) request.input = request.output = rank == c.root ? own.in.data() : own.out.data();
    if (row().kind == Kind::reduce && rank != c.root) request.input = own.in.data(), request.output = nullptr;
    return request;
  }

  void run_random(ClusterOfThreads& ranks, size_t most_bytes) {
    // Exact in any order.
    static const std::pair<Op, Type> choices[] = {
        {Op::sum, Type::i32}, {Op::bxor, Type::u16}, {Op::max, Type::f64}, {Op::minloc, Type::f64_i32}};
    auto [op, type] = row().kind == Kind::bcast ? std::pair{Op::sum, Type::byte} : choices[random_() % std::size(choices)];
    Case c{op, type, 1, kernels::size_of(type), int(random_() % unsigned(ranks.size())), {}};
    c.count = 1 + random_() % std::max<size_t>(most_bytes / c.element, 1);
    std::vector<Bytes> inputs;
    for (int r = 0; r < ranks.size(); ++r) inputs.push_back(random_elements(type, c.count, random_));
    run_case(ranks, c, inputs, row().kind == Kind::bcast ? inputs[size_t(c.root)] : reference(op, type, inputs, c.count));
  }

  std::mt19937 random_{20261122};
};

TEST_P(EveryClusterAlgorithm, AgreesWithReference) {
  for (const std::vector<int>& placement : placements) {
    ClusterOfThreads ranks(placement);
    for (size_t most : {64, 3000, 3000, 100000, 100000}) run_random(ranks, most);
  }
}

// Beyond one slice of every kind.
TEST_P(EveryClusterAlgorithm, CutsLargeVectors) {
  for (const std::vector<int>& placement : {placements[0], placements[2]}) {
    ClusterOfThreads ranks(placement);
    run_random(ranks, 6 << 20);
  }
}

// Compositions do not commute: nodes whose ranks follow one another keep their order, and one row keeps it wherever they are.
TEST_P(EveryClusterAlgorithm, AppliesUsersOperationsInRankOrder) {
  if (!reduces()) return;
  int in_order = 0;
  for (const std::vector<int>& placement : placements) {
    ClusterOfThreads ranks(placement);
    in_order += ranks.cluster(0).place.in_order;
    if (row().run != ordered && !ranks.cluster(0).place.in_order) continue;
    for (size_t count : {1, 61, 3001, 200000}) {
      std::vector<Bytes> inputs;
      for (int r = 0; r < ranks.size(); ++r) inputs.push_back(random_elements(Type::i32_i32, count, random_));
      Bytes expected = inputs.back();
      for (int r = ranks.size() - 2; r >= 0; --r) compose(nullptr, inputs[size_t(r)].data(), expected.data(), count);
      int root = int(random_() % unsigned(ranks.size()));
      run_case(ranks, {Op::user, Type::opaque, count, 8, root, {compose, nullptr}}, inputs, expected);
    }
  }
  EXPECT_GT(in_order, 2);
}

// Whichever ranks of a node lead.
TEST_P(EveryClusterAlgorithm, TakesAnyNumberOfDomains) {
  if (row().kind != Kind::allreduce) return;
  for (const std::vector<int>& placement :
       {std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1, 1}, {0, 1, 0, 1, 0, 1}})
    for (int domains : {2, 3, 9}) {
      ClusterOfThreads ranks(placement);
      for (int r = 0; r < ranks.size(); ++r) ranks.cluster(r).domains = domains;
      for (size_t most : {64, 3000, 3 << 20}) run_random(ranks, most);
    }
}

// The same bits on all ranks, however the sums are cut.
TEST_P(EveryClusterAlgorithm, GivesAllRanksTheSameBits) {
  if (row().kind != Kind::allreduce) return;
  ClusterOfThreads ranks(placements[6]);
  for (size_t count : {5, 5000, 300000}) {
    std::uniform_real_distribution<float> any(-1, 1);
    std::vector<std::vector<float>> in(8, std::vector<float>(count)), out = in;
    for (auto& one : in)
      for (float& value : one) value = any(random_);
    ranks.run([&](Cluster& cluster) {
      Request request;
      request.kind = Kind::allreduce;
      request.type = Type::f32;
      request.element = 4;
      request.count = count;
      request.input = in[size_t(cluster.place.rank)].data();
      request.output = out[size_t(cluster.place.rank)].data();
      return row().run(cluster, request);
    });
    for (const auto& one : out) EXPECT_TRUE(std::memcmp(one.data(), out[0].data(), count * 4) == 0);
  }
}

std::string title(const ::testing::TestParamInfo<int>& info) {
  return std::string(name(cluster_algorithms[info.param].kind)) + "_" + cluster_algorithms[info.param].name;
}

// Those that only move bytes are tested in hierarchy_shipment_test.cpp.
std::vector<int> rows() {
  std::vector<int> found;
  for (int i = 0; i < cluster_algorithm_count; ++i)
    if (cluster_algorithms[i].kind <= Kind::allreduce) found.push_back(i);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryClusterAlgorithm, ::testing::ValuesIn(rows()), title);

// Whoever comes late holds up nobody on other nodes, be the message longer than all cells.
TEST(ClusterBcast, OfALateRankReachesOtherNodes) {
  constexpr size_t bytes = 1'600'000;
  for (const ClusterAlgorithm& row : cluster_algorithms)
    for (const int late : {1, 3}) {  // on the root's node, and on the next
      if (row.kind != Kind::bcast) continue;
      ClusterOfThreads ranks({0, 0, 1, 1, 2, 2});
      std::atomic<int> done{0};
      bool held_up = false;
      ranks.run([&](Cluster& cluster) {
        const int rank = cluster.place.rank;
        std::vector<unsigned char> data(bytes, rank == 0 ? 7 : 0);
        for (int looks = 0; rank == late && done < 2 && !held_up; ++looks) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          held_up = looks > 20'000;
        }
        Request request;
        request.kind = Kind::bcast;
        request.count = bytes;
        request.input = request.output = data.data();
        STRETTO_TRY(row.run(cluster, request));
        done += rank >= 4;
        return data == std::vector<unsigned char>(bytes, 7) ? Status::good() : invalid("wrong bytes", rank);
      });
      EXPECT_FALSE(held_up) << row.name << ", rank " << late;
    }
}

TEST(ClusterAlgorithms, HaveDistinctNamesPerKind) {
  std::set<std::string> seen;
  for (const ClusterAlgorithm& a : cluster_algorithms) EXPECT_TRUE(seen.insert(std::string(name(a.kind)) + "/" + a.name).second);
}

}  // namespace
}  // namespace stretto::collective
