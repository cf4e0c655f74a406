#include "collective/patterns/slots.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "unit/collective/team_of_threads.hpp"

namespace stretto::collective {
namespace {

// Element i of rank r, and the sum over `size` ranks.
int32_t value(int r, size_t i) {
  return int32_t(i) * (r + 1) + r;
}
int32_t sum(int size, size_t i) {
  int32_t total = 0;
  for (int r = 0; r < size; ++r) total += value(r, i);
  return total;
}

Request request_of(Kind kind, size_t count, int root) {
  Request request;
  request.kind = kind;
  request.type = kernels::Type::i32;
  request.element = 4;
  request.count = count;
  request.root = root;
  return request;
}

struct Case {
  int size;
  size_t count;
};

class Slots : public testing::TestWithParam<Case> {};

TEST_P(Slots, AllreduceLikeTheReference) {
  const auto [size, count] = GetParam();
  TeamOfThreads team(size);
  team.run([&](Team& t) {
    std::vector<int32_t> in(count), out(count, -1);
    for (size_t i = 0; i < count; ++i) in[i] = value(t.rank, i);
    Request request = request_of(Kind::allreduce, count, 0);
    request.input = in.data();
    request.output = out.data();
    EXPECT_TRUE(fits_in_slots(request));
    Status status = run_in_slots(t, request);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(out[i], sum(t.size, i));
    return status;
  });
}

TEST_P(Slots, ReduceInPlaceAtTheRoot) {
  const auto [size, count] = GetParam();
  TeamOfThreads team(size);
  team.run([&](Team& t) {
    const int root = t.size - 1;
    std::vector<int32_t> data(count);
    for (size_t i = 0; i < count; ++i) data[i] = value(t.rank, i);
    Request request = request_of(Kind::reduce, count, root);
    request.input = data.data();
    request.output = t.rank == root ? data.data() : nullptr;
    Status status = run_in_slots(t, request);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(data[i], t.rank == root ? sum(t.size, i) : value(t.rank, i));
    return status;
  });
}

TEST_P(Slots, BcastFromEveryRoot) {
  const auto [size, count] = GetParam();
  TeamOfThreads team(size);
  team.run([&](Team& t) {
    for (int root = 0; root < t.size; ++root) {
      std::vector<int32_t> data(count, -1);
      for (size_t i = 0; t.rank == root && i < count; ++i) data[i] = value(root, i);
      Request request = request_of(Kind::bcast, count, root);
      request.input = request.output = data.data();
      Piece got{data.data(), request.bytes()};
      if (t.rank != root) request.gets = &got;
      STRETTO_TRY(run_in_slots(t, request));
      EXPECT_EQ(got.bytes, request.bytes());
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(data[i], value(root, i));
    }
    return Status::good();
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Slots, testing::Values(Case{2, 1}, Case{2, 268}, Case{2, 269}, Case{3, 5000}, Case{4, 2680}));

}  // namespace
}  // namespace stretto::collective
