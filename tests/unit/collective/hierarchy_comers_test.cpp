// Bcast by the nodes in the order in which they come, and by the ranks that are there.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "cluster_of_threads.hpp"

namespace stretto::collective {
namespace {

using namespace std::chrono_literals;

Status bcast(Cluster& cluster, int root, std::vector<unsigned char>& data) {
  Request request;
  request.kind = Kind::bcast;
  request.root = root;
  request.count = data.size();
  request.input = request.output = data.data();
  return bcast_comers(cluster, request);
}

// Ranks that are late come once the others in `early` have got a message of rank 0, or never will.
void expect_early(const std::vector<int>& node_names, const std::vector<int>& late, const std::vector<int>& early,
                  size_t bytes = 1'600'000) {  // more than all cells
  ClusterOfThreads ranks(node_names);
  const auto among = [](const std::vector<int>& some, int r) { return std::find(some.begin(), some.end(), r) != some.end(); };
  std::atomic<size_t> got{0};
  std::atomic<bool> held_up{false};
  ranks.run([&](Cluster& cluster) {
    const int rank = cluster.place.rank;
    for (int looks = 0; among(late, rank) && got < early.size() && !held_up; ++looks) {
      std::this_thread::sleep_for(1ms);
      if (looks > 20'000) held_up = true;
    }
    std::vector<unsigned char> data(bytes, rank == 0 ? 7 : 0);
    STRETTO_TRY(bcast(cluster, 0, data));
    got += among(early, rank);
    return data == std::vector<unsigned char>(bytes, 7) ? Status::good() : invalid("wrong bytes", rank);
  });
  EXPECT_FALSE(held_up) << "rank " << late[0] << " late, rank " << early[0] << " has waited for it";
}

TEST(BcastByComers, WaitsForNobodyButWhoIsNeeded) {
  const std::vector<int> nodes = {0, 0, 1, 1, 2, 2};
  expect_early(nodes, {2}, {3}, 1'000);  // who carried the last message into its node: another does
  expect_early(nodes, {2}, {4, 5});
  expect_early(nodes, {2, 3}, {4, 5});  // a whole node: it is the last of the chain
  expect_early(nodes, {1, 4}, {2, 3});  // ranks of the root's node and of another
  expect_early({0, 1, 1, 2}, {1, 2}, {3});
}

// The rank that stood in for a late one goes on to do so.
TEST(BcastByComers, KeepsWhoCarriedLast) {
  constexpr uint64_t a_moment = 2'000'000, very_long = 20'000'000'000;
  ClusterOfThreads ranks({0, 1, 1, 1});
  const auto carrier = [&](bool is_late, uint64_t patience) {
    std::atomic<int> found{0};
    ranks.run([&](Cluster& cluster) {
      if (is_late && cluster.place.rank == 1) std::this_thread::sleep_for(200ms);
      if (cluster.carrier_from(0, patience) == cluster.place.local && cluster.place.node == 1) found += cluster.place.rank;
      return cluster.leave_message();
    });
    return found.load();
  };
  EXPECT_EQ(carrier(false, very_long), 1);
  const int stands_in = carrier(true, a_moment);
  EXPECT_TRUE(stands_in == 2 || stands_in == 3) << stands_in;
  EXPECT_EQ(carrier(false, very_long), stands_in);
}

// More messages than claims are kept, of any root, by ranks that come in any order.
TEST(BcastByComers, ManyMessagesInAnyOrderOfArrival) {
  for (const std::vector<int>& placement : placements) {
    ClusterOfThreads ranks(placement);
    const int messages = 3 * int(Board::carriers_kept);
    ranks.run([&](Cluster& cluster) {
      std::mt19937 same(5), own(unsigned(cluster.place.rank));
      for (int m = 0; m < messages; ++m) {
        const int root = int(same() % unsigned(ranks.size()));
        const size_t bytes = m % 16 == 0 ? 300'000 : 1 + same() % 3000;
        if (own() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
        const auto expected = std::vector<unsigned char>(bytes, static_cast<unsigned char>(m + 1));
        std::vector<unsigned char> data(bytes, 0);
        if (cluster.place.rank == root) data = expected;
        STRETTO_TRY(bcast(cluster, root, data));
        if (data != expected) return invalid("wrong bytes", m);
      }
      return Status::good();
    });
  }
}

}  // namespace
}  // namespace stretto::collective
