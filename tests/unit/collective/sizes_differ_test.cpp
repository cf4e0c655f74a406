// Reductions of ranks that give different sizes, in every row: whoever notices ends the call, nobody waits for ever, and nobody
// has a result that others have no part in.
#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "unit/collective/team_of_threads.hpp"

namespace stretto::collective {
namespace {

struct Case {
  int ranks;
  int other;  // the rank that gives another size
  size_t count, its_count;
};

std::vector<Case> cases(size_t max_bytes) {
  std::vector<Case> all;
  for (int ranks : {2, 4})
    for (int other : {0, ranks - 1})
      for (size_t count : {200, 5000})
        for (size_t its_count : {count / 2, count + count / 2, count * 8})
          if (4 * std::max(count, its_count) <= max_bytes) all.push_back({ranks, other, count, its_count});
  return all;
}

bool is_prefix(Kind kind) {
  return kind == Kind::scan || kind == Kind::exscan;
}

std::vector<const Algorithm*> rows() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& row : algorithms)
    if (row.kind == Kind::reduce || row.kind == Kind::allreduce || is_prefix(row.kind)) all.push_back(&row);
  return all;
}

// Stands for the communicator, by which those who wait learn that a call has ended for others.
struct Ended {
  std::atomic<bool> one{false};
  static bool alive(void* self, int /*rank*/) { return !static_cast<Ended*>(self)->one; }
};

TeamOptions options_for(const Algorithm& row, int ranks, Ended& ended) {
  TeamOptions options;
  options.hooks.alive = Ended::alive;
  options.hooks.context = &ended;
  for (int r = 0; row.order == Order::by_domain && r < ranks; ++r) options.domains.push_back(2 * r / ranks);
  return options;
}

// Whether rank r has a result in which the other rank's contribution counts, or should.
bool depends(const Algorithm& row, const Case& c, int r) {
  if (row.kind == Kind::reduce) return r == 0;
  if (!is_prefix(row.kind)) return true;
  return r > 0 && r >= c.other;
}

void expect_noticed(const Algorithm& row, const Case& c) {
  Ended ended;
  TeamOfThreads threads(c.ranks, options_for(row, c.ranks, ended));
  std::atomic<int> noticed{0};
  threads.run([&](Team& team) {
    const size_t count = team.rank == c.other ? c.its_count : c.count, room = std::max(c.count, c.its_count);
    constexpr int32_t untouched = -1;
    std::vector<int32_t> in(count, 1), out(room, untouched);
    Request request;
    request.kind = row.kind;
    request.type = kernels::Type::i32;
    request.element = 4;
    request.count = count;
    request.input = in.data();
    request.output = request.kind == Kind::reduce && team.rank != 0 ? nullptr : out.data();
    const Status status = row.run(team, request);
    if (status.code == Code::truncated || status.code == Code::disagreed) ++noticed;
    if (!status.ok()) ended.one = true;
    if (std::any_of(out.begin() + ptrdiff_t(count), out.end(), [](int32_t v) { return v != untouched; }))
      return invalid("stored behind the output", team.rank);
    return status.ok() && depends(row, c, team.rank) ? invalid("not noticed by a rank that has a result", team.rank)
                                                     : Status::good();
  });
  EXPECT_GT(noticed, 0);
}

class SizesDiffer : public testing::TestWithParam<const Algorithm*> {};

TEST_P(SizesDiffer, IsNoticed) {
  const Algorithm& row = *GetParam();
  const bool takes_short_ones = std::strcmp(row.name, "handover") == 0;  // it moves a message between two ranks
  for (const Case& c : cases(row.max_bytes)) {
    if (takes_short_ones && c.ranks == 2 && (c.other == 0) == (c.its_count < c.count)) continue;
    SCOPED_TRACE(std::to_string(c.its_count) + " at rank " + std::to_string(c.other) + " of " + std::to_string(c.ranks) +
                 " among " + std::to_string(c.count));
    expect_noticed(row, c);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, SizesDiffer, testing::ValuesIn(rows()),
                         [](const auto& case_of) { return std::string(name(case_of.param->kind)) + "_" + case_of.param->name; });

TEST(Sizes, LongOnesHaveNotesOfTheirOwn) {
  std::set<uint32_t> notes;
  Request request;
  request.kind = Kind::allreduce;
  for (size_t mib = 1; mib <= 1 << 16; mib *= 2)
    for (size_t more : {0, 8}) {
      request.count = (mib << 20) + more;
      notes.insert(note_of(request));
    }
  EXPECT_EQ(notes.size(), 2u * 17);
}

Way row(Kind kind, const char* wanted) {
  for (const Algorithm& a : algorithms)
    if (a.kind == kind && std::strcmp(a.name, wanted) == 0) return a.run;
  return nullptr;
}

TEST(Sizes, DirectReductionsOfDifferentSizesAreTruncatedForAll) {
  for (Kind kind : {Kind::reduce, Kind::allreduce, Kind::scan}) {
    const Way run = row(kind, "direct");
    constexpr int ranks = 4;
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

// Who gives to a reduction does not wait for its root, which compares all the same.
TEST(Sizes, OfCallsThatOthersHaveLeftDiffer) {
  TeamOfThreads threads(2);
  std::atomic<bool> given{false};
  threads.run([&](Team& team) {
    const Way run = row(Kind::reduce, "gather");
    std::vector<int32_t> in(300, 1), out(300);
    const auto reduce = [&](size_t count) {
      Request request;
      request.kind = Kind::reduce;
      request.type = kernels::Type::i32;
      request.element = 4;
      request.count = count;
      request.input = in.data();
      request.output = team.rank == 0 ? out.data() : nullptr;
      return run(team, request);
    };
    if (team.rank == 1) {
      for (size_t count : {200, 300, 200}) STRETTO_TRY(reduce(count));
      given = true;
      return Status::good();
    }
    while (!given) std::this_thread::yield();
    STRETTO_TRY(reduce(200));
    return reduce(200).code == Code::disagreed ? Status::good() : invalid("not noticed");
  });
}

// The last rank's room differs from the message.
void broadcast(Way run, const TeamOptions& options, size_t message, size_t room, int ranks = 4) {
  TeamOfThreads threads(ranks, options);
  const int root = ranks == 2 ? 0 : 1;
  for (int again = 0; again < 3; ++again)
    threads.run([&](Team& team) {
      const size_t own = team.rank == ranks - 1 ? room : message, held = std::min(own, message);
      std::vector<char> data(own, team.rank == root ? 'm' : '-');
      Request request;
      request.kind = Kind::bcast;
      request.count = own;
      request.root = root;
      request.input = request.output = data.data();
      Piece got{data.data(), own};
      if (team.rank != root) request.gets = &got;
      const Status status = run(team, request);
      if (status.ok() && got.bytes != held) return invalid("what came is not told", team.rank);
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
      broadcast(row(Kind::bcast, "handover"), options, 20000, 70000, 2);
      broadcast(row(Kind::bcast, "handover"), options, 70000, 20000, 2);
    }
}

}  // namespace
}  // namespace stretto::collective
