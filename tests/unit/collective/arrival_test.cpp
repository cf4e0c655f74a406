// Collectives whose ranks arrive in any order: sequences of calls by random algorithms on one team, with random delays and no
// synchronisation between calls, against the plain reference, bit for bit. Values are such that another order of additions gives
// other bits.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <string>

#include "collective/algorithms.hpp"
#include "reference.hpp"
#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

using kernels::Op;
using kernels::Type;

constexpr size_t guard = 64;
#if defined(__SANITIZE_THREAD__)
constexpr unsigned seeds = 6;
#else
constexpr unsigned seeds = 12;
#endif

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

Call random_call(const Algorithm& row, int ranks, std::mt19937& random) {
  Call call{};
  call.row = &row;
  const bool user = row.kind != Kind::bcast && random() % 8 == 0 && std::string(row.name).find("paper") == std::string::npos;
  if (user) call.op = Op::user, call.type = Type::i32_i32;
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

void check(const Call& call, const std::string& where) {
  if (call.row->kind == Kind::barrier) return;
  const Bytes wanted = expected(call);
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

bool in_arrival_order(const Algorithm& row) {
  return std::string(row.name).find("paper") != std::string::npos;
}

std::vector<const Algorithm*> rows_of(const std::string& part) {
  std::vector<const Algorithm*> rows;
  for (const Algorithm& row : algorithms)
    if (row.kind <= Kind::allreduce && std::string(row.name).find(part) != std::string::npos && !in_arrival_order(row))
      rows.push_back(&row);
  return rows;
}

void run_seed(unsigned seed, int ranks, const TeamOptions& options, const std::string& part) {
  std::mt19937 random(seed);
  TeamOfThreads threads(ranks, options);
  const auto rows = rows_of(part);
  std::vector<Call> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(random_call(*rows[random() % rows.size()], ranks, random));
  run_calls(threads, calls);
  for (size_t i = 0; i < calls.size(); ++i) check(calls[i], "seed " + std::to_string(seed) + " call " + std::to_string(i));
}

TEST(Arrival, GivesTheSameBitsInEveryOrder) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (unsigned seed = 0; seed < seeds; ++seed) run_seed(seed * 100 + unsigned(ranks), ranks, {}, "");
}

TEST(Arrival, GivesTheSameBitsByPresence) {
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (unsigned seed = 0; seed < seeds; ++seed) run_seed(5000 + seed * 100 + unsigned(ranks), ranks, {}, "presence");
}

TEST(Arrival, SleepsAndWakes) {
  TeamOptions options;
  options.policy = {.looks = 1, .spins = 0, .patience_ns = 0};
  for (unsigned seed = 0; seed < 20; ++seed) run_seed(10000 + seed, 2 + int(seed) % 5, options, "");
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

// Some ranks can reach nobody's memory: what the others have combined until they come is brought to its end through cells.
TEST(Arrival, BringsStoppedSlicesToTheirEnd) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    TeamOptions options;
    options.direct_for = [seed](int rank) { return (rank * 7 + int(seed)) % 3 != 0; };
    run_seed(20000 + seed, 2 + int(seed) % 7, options, "presence_direct");
  }
}

}  // namespace
}  // namespace stretto::collective
