// Collectives whose ranks arrive in any order: sequences of calls by random algorithms on one team, with random delays and no
// synchronisation between calls, against the plain reference, bit for bit. Values are such that another order of additions gives
// other bits. What combines in the order of arrival is compared by integers, and by sums that are alike on all ranks and differ
// from the exact ones by rounding alone. STRETTO_TEST_SEEDS=N takes N seeds of each kind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>

#include "collective/algorithms.hpp"
#include "collective/patterns/epoch.hpp"
#include "reference.hpp"
#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

constexpr size_t guard = 64;

unsigned seeds_or(unsigned usual) {
  const char* asked = getenv("STRETTO_TEST_SEEDS");
  return asked ? unsigned(atoi(asked)) : usual;
}
unsigned seeds() {
  return seeds_or(unsigned(in_time(12)));
}

Bytes wild_floats(size_t count, std::mt19937& random) {
  Bytes bytes(count * sizeof(float));
  std::uniform_real_distribution<float> mantissa(-1, 1);
  for (size_t i = 0; i < count; ++i) {
    float value = std::ldexp(mantissa(random), int(random() % 24));
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  }
  return bytes;
}

// One call: what each rank gives and gets, and when it comes.
struct Call {
  const Algorithm* row;
  Op op = Op::sum;
  Type type = Type::f32;
  size_t count = 0;
  int root = 0;
  bool by_arrival = false;  // contributions may be combined in the order in which they come
  std::vector<Bytes> inputs, outputs;
  std::vector<bool> in_place;
  std::vector<int> delay_us;

  Request request(int rank) {
    const size_t r = size_t(rank);
    Request request;
    request.kind = row->kind;
    request.op = op;
    request.type = type;
    request.count = count;
    request.element = op == Op::user ? 8 : kernels::size_of(type);
    request.root = root;
    request.user = {compose, nullptr};
    request.input = inputs[r].data();
    request.output = outputs[r].data() + guard;
    if (row->kind == Kind::bcast) {
      request.input = request.output = rank == root ? inputs[r].data() : outputs[r].data() + guard;
    } else if (row->kind == Kind::reduce && rank != root) {
      request.output = nullptr;
    } else if (in_place[r]) {
      std::memcpy(request.output, request.input, inputs[r].size());
      request.input = request.output;
    }
    return request;
  }
};

enum class Shape { balanced, ascending, descending, first_late, last_late, random };
constexpr int shapes = 6;

int delay_of(Shape shape, int rank, int ranks, std::mt19937& random) {
  constexpr int step = 60;
  switch (shape) {
    case Shape::balanced:
      return 0;
    case Shape::ascending:
      return rank * step;
    case Shape::descending:
      return (ranks - rank) * step;
    case Shape::first_late:
      return rank == 0 ? 4 * step : 0;
    case Shape::last_late:
      return rank == ranks - 1 ? 4 * step : 0;
    case Shape::random:
      return int(random() % (4 * step));
  }
  return 0;
}

Call random_call(const Algorithm& row, int ranks, bool by_arrival, std::mt19937& random) {
  Call call{};
  call.row = &row;
  call.by_arrival = by_arrival;
  const bool user = row.kind != Kind::bcast && random() % 8 == 0;
  if (user) call.op = Op::user, call.type = Type::i32_i32;
  if (by_arrival && !user && random() % 2) call.type = Type::i32;
  if (row.kind == Kind::bcast) call.type = Type::byte;
  if (row.kind != Kind::bcast && !user && random() % 4 == 0) call.op = Op::minloc, call.type = Type::f64_i32;
  const size_t limit = std::min<size_t>(row.max_bytes, 60000) / kernels::size_of(call.type);
  call.count = 1 + random() % (random() % 3 == 0 ? std::min<size_t>(limit, 40) : limit);
  call.root = int(random() % unsigned(ranks));
  const auto shape = Shape(random() % shapes);
  for (int r = 0; r < ranks; ++r) {
    call.inputs.push_back(call.type == Type::f32 ? wild_floats(call.count, random)
                                                 : random_elements(call.type, call.count, random));
    call.outputs.emplace_back(call.inputs.back().size() + 2 * guard, 0xa5);
    call.in_place.push_back(random() % 2);
    call.delay_us.push_back(delay_of(shape, r, ranks, random));
  }
  return call;
}

Bytes expected(const Call& call) {
  if (call.row->kind == Kind::bcast) return call.inputs[size_t(call.root)];
  if (call.op != Op::user) return reference(call.op, call.type, call.inputs, call.count);
  Bytes result = call.inputs.back();
  for (size_t r = call.inputs.size() - 1; r-- > 0;) compose(nullptr, call.inputs[r].data(), result.data(), call.count);
  return result;
}

const float* floats_of(const Bytes& out) {
  return reinterpret_cast<const float*>(out.data() + guard);
}

// Whether a sum of floats differs from the exact one by what rounding explains, whatever the order of its terms.
bool is_sum(const Call& call, const float* sums) {
  const size_t ranks = call.inputs.size();
  for (size_t i = 0; i < call.count; ++i) {
    double sum = 0, magnitude = 0;
    for (const Bytes& input : call.inputs) {
      float term;
      std::memcpy(&term, &input[i * sizeof term], sizeof term);
      sum += double(term), magnitude += std::fabs(double(term));
    }
    if (!(std::fabs(double(sums[i]) - sum) <= double(ranks) * 0x1p-24 * magnitude)) return false;
  }
  return true;
}

void check(const Call& call, const std::string& where) {
  if (call.row->kind == Kind::barrier) return;
  Bytes wanted = expected(call);
  if (call.by_arrival && call.type == Type::f32) {  // of several sums that are right, the one that all ranks must have
    const float* sums = floats_of(call.outputs[call.row->kind == Kind::reduce ? size_t(call.root) : 0]);
    ASSERT_TRUE(is_sum(call, sums)) << where << ": " << name(call.row->kind) << " " << call.row->name << " count " << call.count;
    std::memcpy(wanted.data(), sums, wanted.size());
  }
  for (size_t r = 0; r < call.outputs.size(); ++r) {
    const Bytes& out = call.outputs[r];
    for (size_t i = 0; i < guard; ++i)
      ASSERT_TRUE(out[i] == 0xa5 && out[out.size() - 1 - i] == 0xa5) << where << " rank " << r << " wrote outside its buffer";
    const bool has_result = call.row->kind == Kind::allreduce || (call.row->kind == Kind::reduce) == (int(r) == call.root);
    if (has_result && std::memcmp(out.data() + guard, wanted.data(), wanted.size()) != 0)
      FAIL() << where << ": " << name(call.row->kind) << " " << call.row->name << " rank " << r << " of " << call.outputs.size()
             << ", op " << name(call.op) << " count " << call.count << " root " << call.root;
  }
}

// Calls one after the other, each rank at its own pace.
void run_calls(TeamOfThreads& threads, std::vector<Call>& calls) {
  threads.run([&](Team& team) {
    for (Call& call : calls) {
      if (int us = call.delay_us[size_t(team.rank)]; us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
      STRETTO_TRY(call.row->run(team, call.request(team.rank)));
    }
    return Status::good();
  });
}

// The rows whose names have `part` in them; those that combine in the order of arrival where it begins with "paper" alone.
std::vector<const Algorithm*> rows_of(const std::string& part) {
  std::vector<const Algorithm*> rows;
  const auto has = [](const Algorithm& row, const std::string& word) {
    return std::string(row.name).find(word) != std::string::npos;
  };
  for (const Algorithm& row : algorithms)
    if (row.kind <= Kind::allreduce && has(row, part) && (row.order == Order::by_arrival) == (part.rfind("paper", 0) == 0))
      rows.push_back(&row);
  return rows;
}

void run_seed(unsigned seed, int ranks, const TeamOptions& options, const std::string& part) {
  std::mt19937 random(seed);
  TeamOfThreads threads(ranks, options);
  const auto rows = rows_of(part);
  const bool by_arrival = options.arrival_order || part.rfind("paper", 0) == 0;
  std::vector<Call> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(random_call(*rows[random() % rows.size()], ranks, by_arrival, random));
  run_calls(threads, calls);
  for (size_t i = 0; i < calls.size(); ++i) check(calls[i], "seed " + std::to_string(seed) + " call " + std::to_string(i));
}

TEST(Arrival, GivesTheSameBitsInEveryOrder) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (unsigned seed = 0; seed < seeds(); ++seed) run_seed(seed * 100 + unsigned(ranks), ranks, {}, "");
}

TEST(Arrival, GivesTheSameBitsByPresence) {
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (unsigned seed = 0; seed < seeds(); ++seed) run_seed(5000 + seed * 100 + unsigned(ranks), ranks, {}, "presence");
}

TEST(Arrival, GivesTheSameSumsInTheOrderOfArrival) {
  TeamOptions options;
  options.arrival_order = true;
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (unsigned seed = 0; seed < seeds(); ++seed) run_seed(30000 + seed * 100 + unsigned(ranks), ranks, options, "presence");
}

TEST(Arrival, GivesTheSameSumsByTheAlgorithmsOfTheLiterature) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (unsigned seed = 0; seed < seeds(); ++seed) run_seed(40000 + seed * 100 + unsigned(ranks), ranks, {}, "paper");
}

TEST(Arrival, SleepsAndWakes) {
  TeamOptions options;
  options.policy = {.looks = 1, .spins = 0, .patience_ns = 0};
  for (unsigned seed = 0; seed < seeds_or(20); ++seed) run_seed(10000 + seed, 2 + int(seed) % 5, options, "");
}

// A message of several rounds to a cell: the root leaves before anybody else has come, and the next calls, whose rounds lie
// otherwise, overwrite nothing.
TEST(Arrival, TheRootOfABroadcastLeavesBehindWhatItsCellsHold) {
  constexpr int ranks = 3, calls = 6;
  TeamOptions options;
  options.cell_bytes = 128 << 10;
  TeamOfThreads threads(ranks, options);
  std::mt19937 random(7);
  const Bytes message = random_elements(Type::byte, 480 << 10, random);
  std::atomic<int> gone{0};
  threads.run([&](Team& team) {
    for (int i = 0; i < calls; ++i) {
      const bool large = i % 3 != 1, is_root = team.rank == 0;
      Bytes mine = is_root ? message : Bytes(message.size());
      Request request;
      request.kind = Kind::bcast;
      request.type = Type::byte;
      request.count = large ? message.size() : 20000;
      request.input = request.output = mine.data();
      while (!is_root && large && gone <= i) std::this_thread::yield();
      STRETTO_TRY(bcast_staged(team, request));
      if (is_root) ++gone;
      if (std::memcmp(mine.data(), message.data(), request.count) != 0) return invalid("wrong bytes", i);
    }
    return Status::good();
  });
}

// All have come to an epoch that nobody leaves before, but one has not looked yet. Those who leave the next ones early must not
// take its place.
TEST(Arrival, WhoHasNotLookedYetIsNotPassed) {
  constexpr int slow = 0, fast = 1, rank_count = 2;
  TeamOfThreads threads(rank_count);
  Request request;
  request.kind = Kind::allreduce;
  Epoch of_slow(threads.team(slow));
  ASSERT_TRUE(of_slow.begin(request, 0).ok());
  of_slow.arrive({});
  std::atomic<bool> passed{false};
  std::thread runs_ahead([&] {
    Team& team = threads.team(fast);
    for (uint64_t round = 0; round <= epoch_ring; ++round) {
      Epoch epoch(team);
      EXPECT_TRUE(epoch.begin(request, 0, round).ok());
      epoch.arrive({});
      if (round > 0) team.waiter.announce(team.mine().drained, round);
    }
    passed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  of_slow.look();
  EXPECT_TRUE(of_slow.all_here());
  threads.team(slow).waiter.announce(threads.team(slow).mine().drained, 1);
  runs_ahead.join();
}

// Some ranks can reach nobody's memory: what the others have combined until they come is brought to its end through cells.
TEST(Arrival, BringsStoppedSlicesToTheirEnd) {
  for (unsigned seed = 0; seed < seeds_or(60); ++seed) {
    TeamOptions options;
    options.direct_for = [seed](int rank) { return (rank * 7 + int(seed)) % 3 != 0; };
    options.arrival_order = seed % 4 == 3;
    run_seed(20000 + seed, 2 + int(seed) % 7, options, "presence_direct");
    if (seed % 3 == 0) run_seed(50000 + seed, 2 + int(seed) % 7, options, "paper_large");
  }
}

}  // namespace
}  // namespace stretto::collective
