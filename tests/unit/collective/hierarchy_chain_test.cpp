// Along a chain of nodes: how vectors are cut, and in which order nodes' contributions are combined.
#include <gtest/gtest.h>

#include "cluster_of_threads.hpp"
#include "collective/hierarchy/chain.hpp"
#include "reference.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

TEST(ChainSlice, GrowsWithTheVectorAndShrinksWithTheChain) {
  for (int nodes = 1; nodes < 600; nodes = 2 * nodes + 1) {
    size_t last = 0;
    for (size_t bytes = 1; bytes < size_t(1) << 36; bytes *= 3) {
      const size_t slice = chain_slice(bytes, nodes);
      EXPECT_EQ(slice % cache_line, 0u);
      EXPECT_GE(slice, last);
      EXPECT_LE(slice, Cluster::room_bytes / (2 * Chain::window)) << "what comes and what goes share the room";
      EXPECT_LE(slice, Cluster::slice_bytes);
      EXPECT_LE(chain_slice(bytes, 2 * nodes), slice);
      last = slice;
    }
  }
}

// Adds floats, as a program's own operation.
void add(void*, const void* in, void* inout, size_t count) {
  for (size_t i = 0; i < count; ++i) static_cast<float*>(inout)[i] += static_cast<const float*>(in)[i];
}

using Floats = std::vector<float>;

// In a node by the kernels' tree, or by a right fold for users' operations; then from the last node of the chain on to the first.
Floats expected_sum(const Placement& place, int head, const std::vector<Floats>& in, bool user) {
  const size_t n = in[0].size();
  Floats sum;
  for (int k = place.nodes - 1; k >= 0; --k) {
    const int node = (head + k) % place.nodes;
    Floats own(n);
    std::vector<const void*> parts;
    for (int l = 0; l < place.ranks_on(node); ++l) parts.push_back(in[size_t(place.rank_at(node, l))].data());
    if (user) {
      own = in[size_t(place.rank_at(node, place.ranks_on(node) - 1))];
      for (size_t l = parts.size() - 1; l-- > 0;) add(nullptr, parts[l], own.data(), n);
    } else {
      kernels::reduce(Op::sum, Type::f32, parts.data(), int(parts.size()), own.data(), n);
    }
    for (size_t i = 0; i < n && !sum.empty(); ++i) own[i] = own[i] + sum[i];
    sum = std::move(own);
  }
  return sum;
}

class ChainOfNodes : public ::testing::TestWithParam<int> {
 protected:
  // Sums that depend on their order, on every placement, to every root.
  void compare(size_t count, bool user, bool ordered) {
    const std::vector<int>& placement = placements[size_t(GetParam())];
    ClusterOfThreads ranks(placement);
    const Placement& place = ranks.cluster(0).place;
    std::mt19937 random(20261122);
    std::uniform_real_distribution<float> any(-1, 1);
    std::vector<Floats> in(placement.size(), Floats(count));
    for (Floats& one : in)
      for (float& value : one) value = any(random);
    for (int root = 0; root < ranks.size(); ++root) {
      Floats out(count, -99);
      ranks.run([&](Cluster& cluster) {
        Request request;
        request.kind = Kind::reduce;
        request.op = user ? Op::user : Op::sum;
        request.type = user ? Type::opaque : Type::f32;
        request.user = user ? UserOp{add, nullptr} : UserOp{};
        request.ordered = ordered;
        request.element = sizeof(float);
        request.count = count;
        request.root = root;
        request.input = in[size_t(cluster.place.rank)].data();
        request.output = cluster.place.rank == root ? out.data() : nullptr;
        return reduce_chain(cluster, request);
      });
      const Floats expected = expected_sum(place, ordered ? 0 : place.node_of[root], in, user);
      EXPECT_EQ(memcmp(out.data(), expected.data(), count * sizeof(float)), 0) << count << " floats to rank " << root;
    }
  }
};

TEST_P(ChainOfNodes, CombinesFromTheRightFromTheRootOn) {
  for (size_t count : {1, 1000, 5000, 300000}) compare(count, false, false);
}

TEST_P(ChainOfNodes, DoesSoWithUsersOperations) {
  compare(70000, true, false);
}

TEST_P(ChainOfNodes, BeginsAtTheFirstNodeWhereOrderCounts) {
  for (size_t count : {1, 5000, 300000}) compare(count, true, true);
}

INSTANTIATE_TEST_SUITE_P(Placements, ChainOfNodes, ::testing::Range(0, int(placements.size())));

}  // namespace
}  // namespace stretto::collective
