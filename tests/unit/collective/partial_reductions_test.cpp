// Reductions of which ranks get different parts: scan, exscan, reduce_scatter and reduce_scatter_block, every row of the table.
#include <gtest/gtest.h>

#include <string>

#include "collective/algorithms.hpp"
#include "reference.hpp"
#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

bool is_prefix(Kind kind) {
  return kind == Kind::scan || kind == Kind::exscan;
}

struct Case {
  Op op;
  Type type;
  size_t element;
  std::vector<size_t> counts;  // of blocks; one for prefixes
  size_t total() const {
    size_t sum = 0;
    for (size_t n : counts) sum += n;
    return sum;
  }
};

// One rank's buffers; in place, the result stands where the input begins.
struct Buffers {
  Bytes input, output;
  bool in_place;
  std::vector<Piece> blocks;

  Buffers(const Case& c, const Bytes& contribution, bool place)
      : input(contribution), output(contribution.size() + 64, 0x5a), in_place(place) {
    char* next = reinterpret_cast<char*>(input.data());
    for (size_t n : c.counts) {
      blocks.push_back({next, n * c.element});
      next += n * c.element;
    }
  }
  unsigned char* result() { return in_place ? input.data() : output.data(); }
};

class EveryPartialReduction : public ::testing::TestWithParam<int> {
 protected:
  const Algorithm& row() const { return algorithms[GetParam()]; }

  Case random_case(int ranks) {
    static const std::pair<Op, Type> choices[] = {{Op::sum, Type::f32},  {Op::prod, Type::f64}, {Op::max, Type::i8},
                                                  {Op::bxor, Type::u16}, {Op::land, Type::i32}, {Op::minloc, Type::f64_i32},
                                                  {Op::sum, Type::c64},  {Op::min, Type::i64}};
    auto [op, type] = choices[random_() % std::size(choices)];
    return with_counts({op, type, kernels::size_of(type), {}}, ranks);
  }

  Case with_counts(Case c, int ranks) {
    size_t blocks = is_prefix(row().kind) ? 1 : size_t(ranks);
    size_t limit = std::min<size_t>(row().max_bytes, 60000) / c.element / blocks;
    size_t equal = 1 + random_() % std::max<size_t>(limit, 1);
    for (size_t i = 0; i < blocks; ++i)
      c.counts.push_back(row().kind == Kind::reduce_scatter ? random_() % (limit + 1) : std::min(equal, limit));
    if (c.total() == 0) c.counts[0] = 1;
    return c;
  }

  Request request_of(const Case& c, Buffers& buffers) {
    Request request;
    request.kind = row().kind;
    request.op = c.op;
    request.type = c.type;
    request.count = c.total();
    request.element = c.element;
    request.input = buffers.input.data();
    request.output = buffers.result();
    if (!is_prefix(row().kind)) request.gives = buffers.blocks.data();
    if (c.op == Op::user) request.user = {compose, nullptr};
    return request;
  }

  Bytes reduced(const Case& c, const std::vector<Bytes>& inputs) {
    if (c.op != Op::user) return reference(c.op, c.type, inputs, c.total());
    Bytes result = inputs.back();
    for (size_t r = inputs.size() - 1; r-- > 0;) compose(nullptr, inputs[r].data(), result.data(), c.total());
    return result;
  }

  // What rank r must find; empty: nothing.
  Bytes expected(const Case& c, const std::vector<Bytes>& inputs, size_t r) {
    if (is_prefix(row().kind)) {
      size_t n = row().kind == Kind::scan ? r + 1 : r;
      return n ? reduced(c, {inputs.begin(), inputs.begin() + ptrdiff_t(n)}) : Bytes{};
    }
    Bytes all = reduced(c, inputs);
    size_t begin = 0;
    for (size_t i = 0; i < r; ++i) begin += c.counts[i] * c.element;
    return Bytes(all.begin() + ptrdiff_t(begin), all.begin() + ptrdiff_t(begin + c.counts[r] * c.element));
  }

  void run_case(TeamOfThreads& threads, const Case& c) {
    std::vector<Bytes> inputs;
    std::vector<Buffers> buffers;
    for (int r = 0; r < threads.size(); ++r) {
      inputs.push_back(c.op == Op::user ? random_elements(Type::i32_i32, c.total(), random_)
                                        : random_elements(c.type, c.total(), random_));
      buffers.emplace_back(c, inputs.back(), random_() % 2);
    }
    threads.run([&](Team& team) { return row().run(team, request_of(c, buffers[size_t(team.rank)])); });
    for (size_t r = 0; r < inputs.size(); ++r) check(c, inputs, buffers[r], r);
  }

  void check(const Case& c, const std::vector<Bytes>& inputs, Buffers& mine, size_t r) {
    Bytes wanted = expected(c, inputs, r), found(mine.result(), mine.result() + wanted.size());
    if (wanted != found)
      ADD_FAILURE() << row().name << " rank " << r << " of " << inputs.size() << ": op " << name(c.op) << ", " << c.total()
                    << " x " << c.element << (mine.in_place ? ", in place" : "");
    if (mine.in_place) return;
    EXPECT_EQ(mine.input, inputs[r]);
    for (size_t i = wanted.size(); i < mine.output.size(); ++i)
      if (mine.output[i] != 0x5a) FAIL() << "rank " << r << " wrote behind its result";
  }

  std::mt19937 random_{20261122};
};

TEST_P(EveryPartialReduction, AgreesWithReference) {
  for (int ranks : {1, 2, 3, 4, 5, 8}) {
    TeamOfThreads threads(ranks);
    for (int i = 0; i < 15; ++i) run_case(threads, random_case(ranks));
  }
}

TEST_P(EveryPartialReduction, AppliesUsersOperationsInRankOrder) {
  for (int ranks : {2, 3, 4, 5}) {
    TeamOfThreads threads(ranks);
    for (int i = 0; i < 8; ++i) run_case(threads, with_counts({Op::user, Type::opaque, 8, {}}, ranks));
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
  options.policy = {1, 0, 0, true};
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

// Ranks of a scan run ahead of those behind them; a slow reader must hold them before its data is overwritten.
TEST_P(EveryPartialReduction, HoldsBackWhoeverRunsAhead) {
  constexpr int ranks = 3, calls = 40;
  TeamOfThreads threads(ranks);
  std::vector<Case> cases;
  std::vector<std::vector<Bytes>> inputs(calls);
  for (int i = 0; i < calls; ++i) {
    cases.push_back(random_case(ranks));
    for (int r = 0; r < ranks; ++r)
      inputs[size_t(i)].push_back(random_elements(cases.back().type, cases.back().total(), random_));
  }
  threads.run([&](Team& team) {
    for (size_t i = 0; i < calls; ++i) {
      Buffers buffers(cases[i], inputs[i][size_t(team.rank)], i % 2);
      if (team.rank == 2) std::this_thread::sleep_for(std::chrono::microseconds(200));
      STRETTO_TRY(row().run(team, request_of(cases[i], buffers)));
      Bytes wanted = expected(cases[i], inputs[i], size_t(team.rank));
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
