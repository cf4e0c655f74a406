// Reductions of which ranks get different parts: scan, exscan, reduce_scatter and reduce_scatter_block, every row of the table.
#include "partial_reductions.hpp"

#include <gtest/gtest.h>

#include <string>

#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

class EveryPartialReduction : public ::testing::TestWithParam<int> {
 protected:
  const Algorithm& row() const { return algorithms[GetParam()]; }
  PartialCase random_case(int ranks) { return calls_.random_case(ranks); }
  PartialCase with_counts(const PartialCase& c, int ranks) { return calls_.with_counts(c, ranks); }
  void run_case(TeamOfThreads& threads, const PartialCase& c) {
    calls_.run_case(threads.size(), c,
                    [&](auto request_of) { threads.run([&](Team& team) { return row().run(team, request_of(team.rank)); }); });
  }

  PartialReductions calls_{row().name, row().kind, std::min<size_t>(row().max_bytes, 60000)};
};

TEST_P(EveryPartialReduction, AgreesWithReference) {
  for (int ranks : {1, 2, 3, 4, 5, 8}) {
    TeamOfThreads threads(ranks);
    for (int i = 0; i < in_time(15); ++i) run_case(threads, random_case(ranks));
  }
}

TEST_P(EveryPartialReduction, ServesManyRanks) {
  TeamOfThreads threads(many_ranks, options_of_many());
  for (int i = 0; i < 2; ++i) run_case(threads, random_case(many_ranks));
}

TEST_P(EveryPartialReduction, AppliesUsersOperationsInRankOrder) {
  for (int ranks : {2, 3, 4, 5}) {
    TeamOfThreads threads(ranks);
    for (int i = 0; i < in_time(8); ++i) run_case(threads, with_counts({Op::user, Type::opaque, 8, {}}, ranks));
  }
}

TEST_P(EveryPartialReduction, GoesOnBeyondHalfOf64Bits) {
  constexpr int ranks = 3;
  TeamOptions options;
  TeamOfThreads threads(ranks, options);
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 8; ++i) run_case(threads, random_case(ranks));
    threads.pass_many_rounds();
  }
}

TEST_P(EveryPartialReduction, PassesTheEndOf32Bits) {
  TeamOptions options;
  options.first_number = UINT32_MAX - 20;
  TeamOfThreads threads(3, options);
  for (int i = 0; i < 20; ++i) run_case(threads, random_case(3));
}

TEST_P(EveryPartialReduction, SleepsAndWakes) {
  TeamOptions options;
  options.policy = {.looks = 1, .spins = 0, .patience_ns = 0};
  TeamOfThreads threads(4, options);
  for (int i = 0; i < 10; ++i) run_case(threads, random_case(4));
}

TEST_P(EveryPartialReduction, DescendsWhenReadsAreRefused) {
  for (uint64_t cut : {0, 1, 2}) {
    TeamOptions options;
    options.faults = [cut](int rank) {
      transport::Faults faults;
      if (rank == 1) faults.cut_after = cut;
      return faults;
    };
    TeamOfThreads threads(3, options);
    for (int i = 0; i < 6; ++i) run_case(threads, random_case(3));
  }
}

TEST_P(EveryPartialReduction, IsRightWhereNothingIsMapped) {
  expect_right_where_unmapped(row().kind, [&](TeamOfThreads& threads) { run_case(threads, random_case(3)); });
}

TEST_P(EveryPartialReduction, LeavesWhatIsNotMapped) {
  if (std::string(row().name) != "direct") return;
  calls_.some_in_place = false;  // which hides buffers from others
  expect_left_where_unmapped([&](TeamOfThreads& threads) { run_case(threads, random_case(threads.size())); });
}

// Ranks of a scan run ahead of those behind them; a slow reader must hold them before its data is overwritten.
TEST_P(EveryPartialReduction, HoldsBackWhoeverRunsAhead) {
  constexpr int ranks = 3, calls = 40;
  TeamOfThreads threads(ranks);
  threads.make_read_late(1);
  std::vector<PartialCase> cases;
  std::vector<std::vector<Bytes>> inputs(calls);
  for (int i = 0; i < calls; ++i) {
    cases.push_back(random_case(ranks));
    for (int r = 0; r < ranks; ++r)
      inputs[size_t(i)].push_back(random_inputs(cases.back().op, cases.back().type, cases.back().total(), calls_.random()));
  }
  threads.run([&](Team& team) {
    for (size_t i = 0; i < calls; ++i) {
      PartialBuffers buffers(cases[i], inputs[i][size_t(team.rank)], i % 2);
      if (team.rank == 2) std::this_thread::sleep_for(std::chrono::microseconds(200));
      STRETTO_TRY(row().run(team, calls_.request_of(cases[i], buffers)));
      Bytes wanted = calls_.expected(cases[i], inputs[i], size_t(team.rank));
      if (!std::equal(wanted.begin(), wanted.end(), buffers.result())) return invalid("wrong values", int(i));
    }
    return Status::good();
  });
}

std::string title(const ::testing::TestParamInfo<int>& info) {
  return std::string(name(algorithms[info.param].kind)) + "_" + algorithms[info.param].name;
}

std::vector<int> rows() {
  std::vector<int> found;
  for (int i = 0; i < algorithm_count; ++i)
    if (algorithms[i].kind >= Kind::reduce_scatter) found.push_back(i);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryPartialReduction, ::testing::ValuesIn(rows()), title);

}  // namespace
}  // namespace stretto::collective
