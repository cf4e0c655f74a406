// Communicators between processes: what runs, what is declined, deaths; without MPI.
#include "engine/communicator.hpp"

#include <csignal>

#include "unit/engine/joined.hpp"

namespace stretto::engine {
namespace {

using collective::Kind;
using collective::Request;

bool allreduce_is_right(Communicator& communicator, int rank, int size, size_t count, const char* algorithm) {
  std::vector<int32_t> in(count), out(count, -1);
  for (size_t i = 0; i < count; ++i) in[i] = int32_t(i) * (rank + 1);
  Request request;
  request.kind = Kind::allreduce;
  request.type = kernels::Type::i32;
  request.element = 4;
  request.count = count;
  request.input = in.data();
  request.output = out.data();
  Outcome outcome = communicator.run(request);
  if (outcome.algorithm < 0 || !outcome.status.ok()) return false;
  if (std::strcmp(collective::algorithms[outcome.algorithm].name, algorithm) != 0) return false;
  for (size_t i = 0; i < count; ++i)
    if (out[i] != int32_t(i) * size * (size + 1) / 2) return false;
  return true;
}

TEST(Communicators, RunAllKindsOfTravelAndGiveEverythingBack) {
  constexpr int size = 3;
  std::string job = unique_job();
  make_stand(size);
  in_processes(size, [&](int rank) {
    Joined joined(rank, size, job, quick(), select::Travel::direct);
    Communicator* communicator = joined.communicator;
    if (communicator == nullptr || communicator->reason() != select::Reason::none) return false;
    if (!allreduce_is_right(*communicator, rank, size, 10, "flat")) return false;
    if (!allreduce_is_right(*communicator, rank, size, 300000, "direct")) return false;
    return joined.everything_is_given_back(size);
  });
}

// Their first calls go by rules of their own: as many as that, or of as many bytes. Others are not counted.
TEST(Communicators, BeginWithoutTouchingTheirCells) {
  constexpr int size = 2;
  const struct {
    size_t count;
    int first;
  } cases[] = {{20000, 64}, {2 << 20, 4}};
  for (const auto& [count, first] : cases) {
    std::string job = unique_job();
    make_stand(size);
    in_processes(size, [&](int rank) {
      Joined joined(rank, size, job);
      *joined.rules = rules_of("allreduce bytes=..1K flat\nallreduce slices\nallreduce bytes=64K.. fresh=yes direct\n");
      const auto is_right = [&](size_t elements, const char* algorithm) {
        return allreduce_is_right(*joined.communicator, rank, size, elements, algorithm);
      };
      for (int call = 0; call < 100; ++call)
        if (!is_right(call % 2 ? 10 : 1000, call % 2 ? "flat" : "slices")) return false;
      for (int call = 0; call < first + 5; ++call)
        if (!is_right(count, call < first ? "direct" : "slices")) return false;
      return joined.everything_is_given_back(size);
    });
  }
}

// Behind the segment's first window, which alone is known to be mapped by all.
TEST(Communicators, VoteOnABoardThatNotAllMayHaveMapped) {
  constexpr int size = 3;
  constexpr uint64_t window = Segment::window_bytes;
  std::string job = unique_job();
  make_stand(size);
  in_processes(size, [&](int rank) {
    Settings settings = quick();
    settings.memory_mib = 256;
    Joined joined(rank, size, job, settings, select::Travel::by_rules, window);
    if (stand->votes.load() != uint32_t(size) || (rank == 0 && joined.taken != window)) return false;
    if (!allreduce_is_right(*joined.communicator, rank, size, 10, "flat")) return false;
    if (rank == 0) joined.job->pool().release(joined.taken, window);
    return joined.everything_is_given_back(size);
  });
}

TEST(Communicators, LeaveEveryOtherTurnToMpiWhereAsked) {
  constexpr int size = 2;
  std::string job = unique_job();
  make_stand(size);
  in_processes(size, [&](int rank) {
    Joined joined(rank, size, job);
    joined.communicator->take_turns_with_mpi(2);
    const bool of_mpi[] = {false, true, true, false};
    for (int call = 0; call < 16; ++call) {
      if (!of_mpi[call / 2 % 4] && !allreduce_is_right(*joined.communicator, rank, size, 10, "flat")) return false;
      if (of_mpi[call / 2 % 4] && joined.communicator->run({}).reason != select::Reason::turn_of_mpi) return false;
    }
    return joined.everything_is_given_back(size);
  });
}

TEST(Communicators, WithoutStagingMemoryLargeOnesAreLeftToMpi) {
  constexpr int size = 2;
  std::string job = unique_job();
  make_stand(size);
  in_processes(size, [&](int rank) {
    Settings settings = quick();
    settings.memory_mib = 1;  // a board fits, cells do not
    Communicator* communicator = Joined(rank, size, job, settings).communicator;
    if (communicator == nullptr) return false;
    if (!allreduce_is_right(*communicator, rank, size, 10, "flat")) return false;
    std::vector<char> data(1 << 20);
    Request request;
    request.kind = Kind::bcast;
    request.count = data.size();
    request.input = request.output = data.data();
    if (communicator->run(request).reason != select::Reason::no_staging_memory) return false;
    return allreduce_is_right(*communicator, rank, size, 10, "flat");
  });
}

// Whichever algorithm waits: for that rank, or as in `ticket` for any.
class Death : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Rules, Death, ::testing::Values("barrier flat", "barrier ticket"));

TEST_P(Death, OfARankIsReportedToTheOthers) {
  constexpr int size = 3;
  std::string job = unique_job();
  make_stand(size);
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      Communicator* communicator = Joined(rank, size, job, quick(), select::Travel::by_rules, 0, GetParam()).communicator;
      if (communicator == nullptr || !communicator->run({}).status.ok()) _exit(2);
      if (rank == 1) raise(SIGKILL);
      Outcome outcome = communicator->run({});
      bool reported = outcome.status.code == Code::peer_lost && outcome.status.detail == 1;
      _exit(reported && communicator->run({}).reason == select::Reason::peer_lost ? 0 : 1);
    }
    children.push_back(child);
  }
  // Rank 1 stays a zombie until the others have noticed.
  for (int rank : {0, 2, 1}) {
    int status;
    waitpid(children[size_t(rank)], &status, 0);
    if (rank == 1)
      EXPECT_TRUE(WIFSIGNALED(status));
    else
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << rank << " " << status;
  }
}

// A rank that cannot do its part tells nobody and waits for nobody; whoever waits for it learns of it, and all further calls on
// the communicator fail on all ranks, while another communicator of the same ranks goes on.
TEST(Communicators, AnAbandonedCallFailsForThoseWhoNeedIt) {
  constexpr int size = 3;
  std::string job = unique_job();
  make_stand(size);
  in_processes(size, [&](int rank) {
    Joined joined(rank, size, job);
    Communicator* communicator = joined.communicator;
    if (communicator == nullptr) return false;
    std::vector<char> data(1 << 20);
    Request request;
    request.kind = Kind::bcast;
    request.root = 1;
    request.count = data.size();
    request.input = request.output = data.data();
    Outcome outcome = communicator->prepare(request);
    if (outcome.algorithm < 0 || !outcome.status.ok()) return false;
    if (rank == 1)
      communicator->abandon();
    else if (communicator->execute(request, outcome.algorithm).detail != 1)
      return false;
    for (int again = 0; again < 3; ++again) {
      outcome = communicator->run({});
      if (outcome.algorithm < 0 || outcome.status.code != Code::peer_lost || outcome.status.detail != 1) return false;
    }
    return joined.everything_is_given_back(size);
  });
}

// Who revokes it waits for nobody; those who wait for that rank are told, and from then on all calls are MPI's, which says the
// same.
TEST(Communicators, OneThatIsRevokedLetsNobodyWait) {
  constexpr int size = 3;
  std::string job = unique_job();
  make_stand(size);
  in_processes(size, [&](int rank) {
    Joined joined(rank, size, job);
    Communicator* communicator = joined.communicator;
    if (communicator == nullptr || !communicator->run({}).status.ok()) return false;
    if (rank == 1) {
      communicator->revoke();
    } else {
      const Outcome outcome = communicator->run({});
      if (outcome.algorithm < 0 || outcome.status.code != Code::revoked) return false;
    }
    for (int again = 0; again < 3; ++again)
      if (communicator->run({}).algorithm >= 0 || communicator->reason() != select::Reason::revoked) return false;
    return joined.everything_is_given_back(size);
  });
}

TEST(Communicators, OverNodesTheyArePutOffUntilTheyAreWorthAState) {
  const std::unique_ptr<Communicator> communicator(Communicator::put_off(8, 3));
  EXPECT_TRUE(communicator->is_put_off() && communicator->spans_nodes() && communicator->declines());
  EXPECT_EQ(communicator->run({}).reason, select::Reason::not_prepared);
  EXPECT_FALSE(communicator->leaves_to_mpi({})) << "its rules are not known yet";
  EXPECT_EQ(communicator->count_call(), 1u);
  EXPECT_EQ(communicator->count_call(), 2u);
  communicator->agree_on_size(Kind::gatherv);
  communicator->take(nullptr);
  EXPECT_FALSE(communicator->is_put_off() || communicator->spans_nodes());
  EXPECT_EQ(communicator->reason(), select::Reason::no_shared_memory);
}

}  // namespace
}  // namespace stretto::engine
