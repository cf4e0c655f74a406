// Direct forms of ranks that disagree about sizes: told, or served as far as there is room; nobody reads or writes beyond a
// buffer.
#include <algorithm>
#include <vector>

#include "unit/collective/team_of_threads.hpp"

namespace stretto::collective {
namespace {

constexpr int ranks = 4;

Way row(Kind kind, const char* name) {
  for (const Algorithm& a : algorithms)
    if (a.kind == kind && std::strcmp(a.name, name) == 0) return a.run;
  return nullptr;
}

TEST(Direct, ReductionsOfDifferentSizesAreTruncatedForAll) {
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

TEST(Direct, BroadcastsTakeShorterMessagesAndRefuseLongerOnes) {
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
