// Every row of the table of Barrier, Bcast, Reduce and Allreduce against a plain reference: random types, operations, counts,
// roots, in place or not.
#include "collective/algorithms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "reference.hpp"
#include "team_of_threads.hpp"
#include "wrapped_transport.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

constexpr size_t guard = 64;

// One rank's buffers, with guard bytes around the output.
struct Buffers {
  Bytes input, output;
  bool in_place = false;

  Buffers(const Bytes& contribution, bool place, size_t bytes)
      : input(contribution), output(bytes + 2 * guard, 0xa5), in_place(place) {
    if (in_place) std::memcpy(data(), input.data(), bytes);
  }
  unsigned char* data() { return output.data() + guard; }
  void describe(Request* request) {
    request->input = in_place ? data() : input.data();
    request->output = data();
  }
  Bytes result() const { return Bytes(output.begin() + guard, output.end() - guard); }
  bool guards_intact() const {
    for (size_t i = 0; i < guard; ++i)
      if (output[i] != 0xa5 || output[output.size() - 1 - i] != 0xa5) return false;
    return true;
  }
};

struct Case {
  Op op;
  Type type;
  size_t count;
  int root;
};

class EveryAlgorithm : public ::testing::TestWithParam<int> {
 protected:
  const Algorithm& row() const { return algorithms[GetParam()]; }

  size_t random_count(size_t element) {
    size_t limit = std::min<size_t>(row().max_bytes, 40000) / element;
    std::uniform_int_distribution<size_t> small(1, std::min<size_t>(limit, 70)), any(1, limit);
    return random_() % 2 ? small(random_) : any(random_);
  }

  Case random_case(int ranks) {
    static const std::pair<Op, Type> choices[] = {{Op::sum, Type::f32},  {Op::prod, Type::f64}, {Op::max, Type::i8},
                                                  {Op::bxor, Type::u16}, {Op::land, Type::i32}, {Op::minloc, Type::f64_i32},
                                                  {Op::sum, Type::c64},  {Op::min, Type::i64},  signed_zeros};
    if (row().kind == Kind::bcast) return {Op::sum, Type::byte, random_count(1), int(random_() % unsigned(ranks))};
    auto [op, type] = choices[random_() % (std::size(choices) - (row().order == Order::by_arrival))];
    return {op, type, random_count(kernels::size_of(type)), int(random_() % unsigned(ranks))};
  }

  void run_case(TeamOfThreads& threads, const Case& c) {
    std::vector<Bytes> inputs;
    std::vector<Buffers> buffers;
    for (int r = 0; r < threads.size(); ++r) {
      inputs.push_back(random_inputs(c.op, c.type, c.count, random_));
      buffers.emplace_back(inputs.back(), random_() % 2, inputs.back().size());
    }
    threads.run([&](Team& team) { return row().run(team, request_of(c, team.rank, buffers[size_t(team.rank)])); });
    if (row().kind != Kind::barrier) check(c, inputs, buffers);
  }

  Request request_of(const Case& c, int rank, Buffers& buffers) {
    Request request;
    request.kind = row().kind;
    request.op = c.op;
    request.type = c.type;
    request.count = c.count;
    request.element = kernels::size_of(c.type);
    request.root = c.root;
    buffers.describe(&request);
    if (row().kind == Kind::bcast) request.input = request.output = rank == c.root ? buffers.input.data() : buffers.data();
    if (row().kind == Kind::reduce && rank != c.root) request.input = buffers.input.data(), request.output = nullptr;
    return request;
  }

  void check(const Case& c, const std::vector<Bytes>& inputs, const std::vector<Buffers>& buffers) {
    Bytes expected = row().kind == Kind::bcast ? inputs[size_t(c.root)] : reference(c.op, c.type, inputs, c.count);
    for (size_t r = 0; r < buffers.size(); ++r) {
      EXPECT_TRUE(buffers[r].guards_intact()) << "rank " << r;
      bool has_result = row().kind == Kind::allreduce || (row().kind == Kind::reduce) == (int(r) == c.root);
      if (has_result && buffers[r].result() != expected)
        ADD_FAILURE() << row().name << " rank " << r << ": op " << name(c.op) << " type " << name(c.type) << " count " << c.count;
    }
  }

  void run_ahead(bool in_domains);
  void sum_rounded(const std::vector<int32_t>& domains, bool by_domain);

  std::mt19937 random_{20220926};
};

TEST_P(EveryAlgorithm, AgreesWithReference) {
  TeamOptions options;
  options.staged = row().needs_stage;
  for (int ranks : {1, 2, 3, 4, 5, 7, 8, 9}) {
    TeamOfThreads threads(ranks, options);
    for (int i = 0; i < in_time(12); ++i) run_case(threads, random_case(ranks));
  }
}

// Made-up domains: aligned blocks, blocks of odd sizes, dealt out in turn, a domain of one, and ranks that stand nowhere.
TEST_P(EveryAlgorithm, AgreesWithReferenceInSeveralDomains) {
  const std::vector<std::vector<int32_t>> layouts = {
      {0, 1},          {0, 0, 1, 1},          {3, 3, 3, 5, 5},          {0, 1, 0, 1, 0},    {7, 2, 2, 2, 7},
      {0, 0, 1, 1, 2}, {1, 1, 1, 1, 0, 0, 0}, {0, 0, 1, 1, 2, 2, 3, 3}, {-1, 0, -1, 0, -1}, {0, 1, 2, 3, 4, 5},
      {0, 0, 0, 0, 1}};
  for (const auto& domains : layouts) {
    TeamOptions options;
    options.domains = domains;
    options.readers = 2;
    TeamOfThreads threads(int(domains.size()), options);
    for (int i = 0; i < in_time(12); ++i) run_case(threads, random_case(threads.size()));
  }
}

TEST_P(EveryAlgorithm, ServesManyRanks) {
  for (const bool in_domains : {false, true}) {
    TeamOptions options = options_of_many();
    if (!in_domains) options.domains.clear();
    TeamOfThreads threads(many_ranks, options);
    for (int i = 0; i < 2; ++i) {
      Case c = random_case(many_ranks);
      if (c.op == Op::prod) c.op = Op::sum;  // so many factors are not exact in any order
      run_case(threads, c);
    }
  }
}

// Sums of numbers that are rounded: the bits are those of the tree over all ranks, by kernels alone.
TEST_P(EveryAlgorithm, RoundsAsTheTreeByRank) {
  for (const std::vector<int32_t>& domains :
       {std::vector<int32_t>{0, 0, 1, 1}, {0, 0, 0, 0, 1}, {0, 0, 1, 1, 2}, {0, 1, 2}, {0, 0, 0, 1, 1}, {0, 1, 0, 1, 0}})
    sum_rounded(domains, false);
}

// Where another order is allowed, it is that of the trees over the domains, and over them.
TEST_P(EveryAlgorithm, RoundsByDomainWhereItMay) {
  sum_rounded({0, 0, 0, 1, 1}, row().order == Order::by_domain);
}

void EveryAlgorithm::sum_rounded(const std::vector<int32_t>& domains, bool by_domain) {
  if (row().kind != Kind::reduce && row().kind != Kind::allreduce) return;
  if (row().order == Order::by_arrival) return;
  TeamOptions options;
  options.domains = domains;
  options.any_order = by_domain;
  TeamOfThreads threads(int(domains.size()), options);
  size_t count = row().max_bytes == any_size ? 3000 : 100;
  std::vector<std::vector<double>> inputs(domains.size(), std::vector<double>(count)), out = inputs;
  std::vector<const void*> all;
  std::normal_distribution<double> any(0, 1);
  for (auto& input : inputs) {
    for (double& value : input) value = any(random_) * std::exp(10 * any(random_));
    all.push_back(input.data());
  }
  std::vector<double> expected(count), low(count), high(count);
  kernels::reduce(Op::sum, Type::f64, all.data(), int(all.size()), expected.data(), count);
  if (by_domain) {  // of three and of two ranks
    kernels::reduce(Op::sum, Type::f64, all.data(), 3, low.data(), count);
    kernels::reduce(Op::sum, Type::f64, all.data() + 3, 2, high.data(), count);
    const void* halves[] = {low.data(), high.data()};
    std::vector<double> other(count);
    kernels::reduce(Op::sum, Type::f64, halves, 2, other.data(), count);
    EXPECT_NE(other, expected) << "the numbers tell the orders apart";
    expected = other;
  }
  threads.run([&](Team& team) {
    auto rank = size_t(team.rank);
    Request request{row().kind, Op::sum, Type::f64, count, sizeof(double), 0, inputs[rank].data(), out[rank].data(), {}};
    if (row().kind == Kind::reduce && rank != 0) request.output = nullptr;
    return row().run(team, request);
  });
  for (size_t r = 0; r < domains.size(); ++r)
    if (row().kind == Kind::allreduce || r == 0) {
      EXPECT_EQ(out[r], expected) << "rank " << r;
    }
}

TEST_P(EveryAlgorithm, GoesOnBeyondHalfOf64Bits) {
  constexpr int ranks = 3;
  TeamOptions options;
  options.domains = {0, 0, 1};
  TeamOfThreads threads(ranks, options);
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 8; ++i) run_case(threads, random_case(ranks));
    threads.pass_many_rounds();
  }
}

TEST_P(EveryAlgorithm, PassesTheEndOf32Bits) {
  TeamOptions options;
  options.first_number = UINT32_MAX - 20;
  for (const std::vector<int32_t>& domains : {std::vector<int32_t>{0, 0}, {0, 0, 1}}) {
    options.domains = domains;
    const int ranks = int(domains.size());
    TeamOfThreads threads(ranks, options);
    for (int i = 0; i < 30; ++i) run_case(threads, random_case(ranks));
  }
}

// As trials may find it to be faster.
TEST_P(EveryAlgorithm, StagesPastTheCaches) {
  constexpr int streamed = 1;
  TeamOptions options;
  options.ring_cells = 16;  // that hold enough rounds of a cell to go round
  for (const int ranks : {2, 3, 5}) {
    TeamOfThreads threads(ranks, options);
    for (int r = 0; r < ranks; ++r) threads.team(r).puts.settle(streamed);
    for (int i = 0; i < in_time(12); ++i) run_case(threads, random_case(ranks));
  }
}

TEST_P(EveryAlgorithm, SleepsAndWakes) {
  TeamOptions options;
  options.policy = {.looks = 1, .spins = 0, .patience_ns = 0};  // straight to the futex
  for (const std::vector<int32_t>& domains : {std::vector<int32_t>{0, 0}, {0, 0, 1, 1}}) {
    options.domains = domains;
    const int ranks = int(domains.size());
    TeamOfThreads threads(ranks, options);
    for (int i = 0; i < in_time(12); ++i) run_case(threads, random_case(ranks));
  }
}

// Direct reads that fail on some ranks, at once or in mid-course, cost nothing but time.
TEST_P(EveryAlgorithm, DescendsWhenReadsAreRefused) {
  for (uint64_t cut : {0, 1, 2, 3}) {
    TeamOptions options;
    options.faults = [cut](int rank) {
      transport::Faults faults;
      if (rank == 1) faults.cut_after = cut;
      return faults;
    };
    options.readers = 1;
    for (const std::vector<int32_t>& domains : {std::vector<int32_t>{0, 0}, {0, 0, 1, 1}}) {
      options.domains = domains;
      const int ranks = int(domains.size());
      TeamOfThreads threads(ranks, options);
      for (int i = 0; i < 6; ++i) run_case(threads, random_case(ranks));
    }
  }
}

// Where peers' memory can be stored to, until it is refused.
class CutPlaces final : public Wrapped {
 public:
  explicit CutPlaces(int served) : CutPlaces(transport::make_local().release(), served) {}

  void* place_at(int peer, transport::Window window, size_t at, size_t n) override {
    return served_-- > 0 ? places_.place_at(peer, window, at, n) : nullptr;
  }

 private:
  CutPlaces(Transport* inner, int served) : Wrapped(std::unique_ptr<Transport>(inner)), places_(*inner), served_(served) {}

  Transport& places_;
  int served_;
};

TEST_P(EveryAlgorithm, DescendsWhenStoresAreRefused) {
  constexpr int ranks = 4;
  for (int served = 0; served < 6; ++served) {
    TeamOfThreads threads(ranks);
    for (int i = 0; i < in_time(12); ++i) {
      for (int r = 0; r < ranks; ++r) threads.team(r).direct = std::make_unique<CutPlaces>(served + r);
      run_case(threads, random_case(ranks));
    }
  }
}

TEST_P(EveryAlgorithm, IsRightWhereNothingIsMapped) {
  expect_right_where_unmapped(row().kind, [&](TeamOfThreads& threads) { run_case(threads, random_case(threads.size())); });
}

TEST_P(EveryAlgorithm, LeavesWhatIsNotMapped) {
  if (std::string(row().name) != "direct") return;
  expect_left_where_unmapped([&](TeamOfThreads& threads) { run_case(threads, random_case(threads.size())); });
}

// Rooted collectives let ranks run ahead; a slow reader must hold them before its data is overwritten.
void EveryAlgorithm::run_ahead(bool in_domains) {
  constexpr int ranks = 3, calls = 40;
  TeamOptions options;
  if (in_domains) options.domains = {0, 1, 1};
  TeamOfThreads threads(ranks, options);
  threads.make_read_late(1);
  threads.run([&](Team& team) {
    for (int call = 0; call < calls; ++call) {
      int32_t values[32], out[32] = {};
      for (int i = 0; i < 32; ++i) values[i] = call * 100 + i;
      Request request;
      request.kind = row().kind;
      request.op = Op::max;
      request.type = row().kind == Kind::bcast ? Type::byte : Type::i32;
      request.element = kernels::size_of(request.type);
      request.count = sizeof values / request.element;
      request.input = values;
      request.output = row().kind == Kind::bcast && team.rank == 0 ? values : out;
      if (row().kind == Kind::reduce && team.rank != 0) request.output = nullptr;
      if (team.rank == 2) std::this_thread::sleep_for(std::chrono::microseconds(300));
      STRETTO_TRY(row().run(team, request));
      bool has_result = row().kind != Kind::reduce || team.rank == 0;
      if (has_result && std::memcmp(request.output, values, sizeof values) != 0) return invalid("wrong values", call);
    }
    return Status::good();
  });
}

TEST_P(EveryAlgorithm, HoldsBackWhoeverRunsAhead) {
  if (row().kind == Kind::barrier) return;
  run_ahead(false);
  run_ahead(true);
}

TEST_P(EveryAlgorithm, AppliesUsersOperationsInRankOrder) {
  if (row().kind != Kind::reduce && row().kind != Kind::allreduce) return;
  for (int ranks : {2, 3, 4, 5, 8}) {
    TeamOfThreads threads(ranks);
    size_t count = row().max_bytes == any_size ? 3001 : 61;
    std::vector<Bytes> inputs;
    std::vector<Buffers> buffers;
    for (int r = 0; r < ranks; ++r) {
      inputs.push_back(random_elements(Type::i32_i32, count, random_));
      buffers.emplace_back(inputs.back(), r % 2, inputs.back().size());
    }
    Bytes expected = inputs.back();
    for (int r = ranks - 2; r >= 0; --r) compose(nullptr, inputs[size_t(r)].data(), expected.data(), count);
    Case c{Op::user, Type::opaque, count, 0};
    threads.run([&](Team& team) {
      Request request = request_of(c, team.rank, buffers[size_t(team.rank)]);
      request.element = 8;
      request.user = {compose, nullptr};
      return row().run(team, request);
    });
    for (int r = 0; r < ranks; ++r)
      if (row().kind == Kind::allreduce || r == 0) {
        EXPECT_EQ(buffers[size_t(r)].result(), expected) << "rank " << r << " of " << ranks;
      }
  }
}

std::string title(const ::testing::TestParamInfo<int>& info) {
  return std::string(name(algorithms[info.param].kind)) + "_" + algorithms[info.param].name;
}

std::vector<int> rows() {
  std::vector<int> found;
  for (int i = 0; i < algorithm_count; ++i)
    if (algorithms[i].kind <= Kind::allreduce) found.push_back(i);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryAlgorithm, ::testing::ValuesIn(rows()), title);

TEST(Algorithms, HaveDistinctNamesPerKind) {
  std::set<std::string> seen;
  for (const Algorithm& a : algorithms) EXPECT_TRUE(seen.insert(std::string(name(a.kind)) + "/" + a.name).second) << a.name;
}

}  // namespace
}  // namespace stretto::collective
