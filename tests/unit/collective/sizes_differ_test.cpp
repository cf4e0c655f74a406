// Reductions of ranks that give different sizes, in every row: whoever notices ends the call, nobody waits for ever, and nobody
// has a result that others have no part in.
#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "unit/collective/team_of_threads.hpp"

namespace stretto::collective {
namespace {

struct Case {
  const Algorithm* row;
  int ranks;
  int other;  // the rank that gives another size
  size_t count, its_count;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << name(c.row->kind) << ' ' << c.row->name << ", " << c.ranks << " ranks, " << c.its_count << " at " << c.other
       << " among " << c.count;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Algorithm& row : algorithms)
    if (row.kind == Kind::reduce || row.kind == Kind::allreduce || row.kind == Kind::scan)
      for (int ranks : {2, 4})
        for (int other : {0, ranks - 1})
          for (size_t count : {200, 5000})
            for (size_t its_count : {count / 2, count + count / 2, count * 8})
              if (4 * std::max(count, its_count) <= row.max_bytes) all.push_back({&row, ranks, other, count, its_count});
  return all;
}

// Stands for the communicator, by which those who wait learn that a call has ended for others.
struct Ended {
  std::atomic<bool> one{false};
  static bool alive(void* self, int /*rank*/) { return !static_cast<Ended*>(self)->one; }
};

class SizesDiffer : public testing::TestWithParam<Case> {};

TEST_P(SizesDiffer, IsNoticed) {
  const Case& c = GetParam();
  Ended ended;
  TeamOptions options;
  options.hooks.alive = Ended::alive;
  options.hooks.context = &ended;
  if (std::strcmp(c.row->name, "levels") == 0) options.domains.assign(size_t(c.ranks), 0), options.domains.back() = 1;
  TeamOfThreads threads(c.ranks, options);
  std::atomic<int> noticed{0};
  threads.run([&](Team& team) {
    const size_t count = team.rank == c.other ? c.its_count : c.count, room = std::max(c.count, c.its_count);
    constexpr int32_t untouched = -1;
    std::vector<int32_t> in(count, 1), out(room, untouched);
    Request request;
    request.kind = c.row->kind;
    request.type = kernels::Type::i32;
    request.element = 4;
    request.count = count;
    request.input = in.data();
    request.output = request.kind == Kind::reduce && team.rank != 0 ? nullptr : out.data();
    const Status status = c.row->run(team, request);
    if (status.code == Code::truncated || status.code == Code::disagreed) ++noticed;
    if (!status.ok()) ended.one = true;
    const bool beyond = std::any_of(out.begin() + ptrdiff_t(count), out.end(), [](int32_t v) { return v != untouched; });
    if (beyond) return invalid("stored behind the output", team.rank);
    const bool leaves_alone =
        request.output == nullptr || (request.kind == Kind::scan && (team.rank == 0 || team.rank < c.other));
    return status.ok() && !leaves_alone ? invalid("not noticed by a rank that has a result", team.rank) : Status::good();
  });
  EXPECT_GT(noticed, 0);
}

INSTANTIATE_TEST_SUITE_P(Rows, SizesDiffer, testing::ValuesIn(cases()), [](const auto& info) {
  const Case& c = info.param;
  return std::string(name(c.row->kind)) + '_' + c.row->name + '_' + std::to_string(c.ranks) + '_' + std::to_string(c.other) +
         '_' + std::to_string(c.count) + '_' + std::to_string(c.its_count);
});

Way row(Kind kind, const char* wanted) {
  for (const Algorithm& a : algorithms)
    if (a.kind == kind && std::strcmp(a.name, wanted) == 0) return a.run;
  return nullptr;
}

constexpr int ranks = 4;

TEST(Sizes, DirectReductionsOfDifferentSizesAreTruncatedForAll) {
  for (Kind kind : {Kind::reduce, Kind::allreduce, Kind::scan}) {
    const Way run = row(kind, "direct");
    TeamOfThreads threads(ranks);
    for (int longer : {0, ranks - 1})
      threads.run([&](Team& team) {
        std::vector<int32_t> in(team.rank == longer ? 9000 : 5000, 1), out(in.size(), -1);
        Request request;
        request.kind = kind;
        request.type = kernels::Type::i32;
        request.element = 4;
        request.count = in.size();
        request.input = in.data();
        request.output = out.data();
        const Status status = run(team, request);
        return status.code == Code::truncated ? Status::good() : invalid("not noticed", int(status.code));
      });
  }
}

// The last rank's room differs from the message.
void broadcast(Way run, const TeamOptions& options, size_t message, size_t room) {
  TeamOfThreads threads(ranks, options);
  constexpr int root = 1;
  for (int again = 0; again < 3; ++again)
    threads.run([&](Team& team) {
      const size_t own = team.rank == ranks - 1 ? room : message, held = std::min(own, message);
      std::vector<char> data(own, team.rank == root ? 'm' : '-');
      Request request;
      request.kind = Kind::bcast;
      request.count = own;
      request.root = root;
      request.input = request.output = data.data();
      const Status status = run(team, request);
      if (own < message) return status.code == Code::truncated ? Status::good() : invalid("not truncated", int(status.code));
      const bool whole = std::count(data.begin(), data.begin() + ptrdiff_t(held), 'm') == ptrdiff_t(held);
      const bool more =
          std::count(data.begin() + ptrdiff_t(held), data.end(), team.rank == root ? 'm' : '-') == ptrdiff_t(own - held);
      return !status.ok() || (whole && more) ? status : invalid("wrong data", team.rank);
    });
}

TEST(Sizes, BroadcastsTakeShorterMessagesAndRefuseLongerOnes) {
  TeamOptions in_domains;
  in_domains.domains = {0, 0, 1, 1};
  for (const char* name : {"flat", "levels"}) {
    broadcast(row(Kind::bcast, name), in_domains, 200, 700);
    broadcast(row(Kind::bcast, name), in_domains, 700, 200);
  }

  TeamOptions by_copies;
  by_copies.faults = [](int) { return transport::Faults{}; };
  for (const char* name : {"direct", "tree"})
    for (const TeamOptions& options : {TeamOptions{}, by_copies}) {
      broadcast(row(Kind::bcast, name), options, 20000, 70000);
      broadcast(row(Kind::bcast, name), options, 70000, 20000);
    }
}

}  // namespace
}  // namespace stretto::collective
