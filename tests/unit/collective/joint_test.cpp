// Rooted shipments of more than two ranks, of which the root and each of the others copy a piece together.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "collective/algorithms.hpp"
#include "collective/patterns/offer.hpp"
#include "collective/patterns/parcels.hpp"
#include "shipments.hpp"
#include "team_of_threads.hpp"
#include "wrapped_transport.hpp"

namespace stretto::collective {
namespace {

const Algorithm& row_of(Kind kind, const char* name) {
  for (const Algorithm& row : algorithms)
    if (row.kind == kind && row.name == std::string(name)) return row;
  return algorithms[0];
}

constexpr Kind rooted[] = {Kind::gather, Kind::gatherv, Kind::scatter, Kind::scatterv};

// A rank that has a core, but not for long: there are fewer than ranks here.
TeamOptions options_of_own_cpus() {
  TeamOptions options;
  options.policy = {.looks = 4, .spins = 4};
  return options;
}

// Without some mechanisms.
class Narrowed final : public Wrapped {
 public:
  Narrowed(std::unique_ptr<Transport> inner, transport::Reach reach) : Wrapped(std::move(inner)), reach_(reach) {}
  transport::Reach reach() const override { return reach_; }

 private:
  transport::Reach reach_;
};

// The first copy of the root's and the first of another's wait for each other.
struct Meeting {
  std::atomic<bool> root_came{false}, other_came{false};

  void come(bool is_root) {
    (is_root ? root_came : other_came) = true;
    for (int looks = 0; !(is_root ? other_came : root_came) && looks < 10'000; ++looks)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    root_came = other_came = true;  // none waits a second time
  }

  class Transport final : public Wrapped {
   public:
    Transport(std::unique_ptr<transport::Transport> inner, Meeting& meeting, bool is_root)
        : Wrapped(std::move(inner)), meeting_(meeting), is_root_(is_root) {}
    Status get(int peer, transport::Window window, transport::Cell cell, size_t at, size_t n, void* scratch,
               const void** data) override {
      meeting_.come(is_root_);
      return Wrapped::get(peer, window, cell, at, n, scratch, data);
    }
    Status give(int peer, transport::Window window, size_t at, const void* data, size_t n) override {
      meeting_.come(is_root_);
      return Wrapped::give(peer, window, at, data, n);
    }

   private:
    Meeting& meeting_;
    bool is_root_;
  };
};

// Others end their waits once the root has ended its call with an error.
std::atomic<bool> root_left{false};
TeamOptions options_until_root_leaves() {
  root_left = false;
  TeamOptions options = options_of_own_cpus();
  options.hooks.alive = [](void*, int rank) { return rank > 0 || !root_left; };
  return options;
}

// Of a rank that makes another call: no more than it says at first.
void post_label(Team& team, const Request& request) {
  Exchange exchange(team);
  void* payload;
  if (!exchange.claim(&payload).ok()) return;
  const uint64_t label = label_of(request.kind, Form::staged, 1);
  std::memcpy(payload, &label, sizeof label);
  exchange.post(sizeof label);
}

class Joint : public ::testing::Test {
 protected:
  static constexpr int ranks = 5;

  // A call in which every piece has so many bytes; some copy, of which each tells how much.
  void run(TeamOfThreads& threads, const Algorithm& row, size_t size, int root) {
    Plan plan{row.kind, ranks, root, {}, std::vector<bool>(ranks, false)};
    for (int from = 0; from < ranks; ++from) plan.message.emplace_back(ranks, random_bytes(random_, size));
    threads.run([&](Team& team) {
      Part part(plan, team.rank);
      STRETTO_TRY(row.run(team, part.request()));
      return part.right() ? Status::good() : invalid("wrong bytes", int(row.kind));
    });
  }

  void count(TeamOfThreads& threads) {
    std::fill_n(counts_, ranks, Counting::Bytes());
    for (int r = 0; r < ranks; ++r) {
      Team& team = threads.team(r);
      if (team.direct) team.direct = std::make_unique<Counting>(std::move(team.direct), &counts_[r]);
    }
  }
  size_t counted(bool of_root, int root) {
    size_t sum = 0;
    for (int r = 0; r < ranks; ++r)
      if ((r == root) == of_root) sum += counts_[r].all();
    return sum;
  }

  std::mt19937 random_{20261127};
  Counting::Bytes counts_[ranks];
};

TEST_F(Joint, CopiesEveryByteOnce) {
  for (const Kind kind : rooted) {
    TeamOfThreads threads(ranks, options_of_own_cpus());
    count(threads);
    int root = 0;
    for (const size_t size : {1, 4095, 8192, 8193, 49'152, 70'000, 700'001}) {
      std::fill_n(counts_, ranks, Counting::Bytes());
      root = (root + 1) % ranks;
      run(threads, row_of(kind, "joint"), size, root);
      const bool is_staged = gathers(kind) && size < offered_from;
      EXPECT_EQ(counted(true, root) + counted(false, root), is_staged ? 0 : size * (ranks - 1)) << name(kind) << " " << size;
    }
  }
}

TEST_F(Joint, BothCopy) {
  for (const Kind kind : rooted) {
    TeamOfThreads threads(ranks, options_of_own_cpus());
    count(threads);
    Meeting meeting;
    for (int r = 0; r < ranks; ++r) {
      Team& team = threads.team(r);
      team.direct = std::make_unique<Meeting::Transport>(std::move(team.direct), meeting, r == 2);
    }
    run(threads, row_of(kind, "joint"), 300'000, 2);
    EXPECT_GT(counted(true, 2), 0u) << name(kind);
    EXPECT_GT(counted(false, 2), 0u) << name(kind);
  }
}

// The others copy all of a scatter; a gather is staged, or read as by direct access.
TEST_F(Joint, RootsOnSharedCpusLeaveItToTheOthers) {
  for (const Kind kind : {Kind::scatter, Kind::scatterv}) {
    TeamOfThreads threads(ranks);
    count(threads);
    run(threads, row_of(kind, "joint"), 300'000, 2);
    EXPECT_EQ(counted(true, 2), 0u) << name(kind);
    EXPECT_EQ(counted(false, 2), size_t(300'000) * (ranks - 1)) << name(kind);
  }
}

TEST_F(Joint, WhoeverCanCopiesAll) {
  for (const Kind kind : rooted)
    for (const bool by_root : {false, true}) {
      TeamOfThreads threads(ranks, options_of_own_cpus());
      count(threads);
      for (int r = 0; r < ranks; ++r) {
        Team& team = threads.team(r);
        // The root has to have something, or it is known from the start that nothing can be copied.
        const transport::Reach none = r == 2 ? transport::Reach(uint32_t(1) << 15) : transport::Reach();
        if ((r == 2) != by_root) team.direct = std::make_unique<Narrowed>(std::move(team.direct), none);
      }
      run(threads, row_of(kind, "joint"), 100'000, 2);
      EXPECT_EQ(counted(by_root, 2), size_t(100'000) * (ranks - 1))
          << name(kind) << (by_root ? " by the root" : " by the others");
      EXPECT_EQ(counted(!by_root, 2), 0u) << name(kind);
    }
}

// One that can be reached neither way: a scatter is staged, and in the next call nothing is copied in vain.
TEST_F(Joint, ScattersAreStagedWhereNeitherOfTwoCan) {
  for (const Kind kind : {Kind::scatter, Kind::scatterv}) {
    TeamOfThreads threads(ranks, options_of_own_cpus());
    count(threads);
    threads.team(1).direct.reset();
    Team& root = threads.team(2);
    root.direct = std::make_unique<Narrowed>(std::move(root.direct), transport::Reach(uint32_t(1) << 15));
    run(threads, row_of(kind, "joint"), 100'000, 2);
    EXPECT_EQ(root.direct, nullptr) << "refused once: never asked again";
    std::fill_n(counts_, ranks, Counting::Bytes());
    run(threads, row_of(kind, "joint"), 100'000, 2);
    EXPECT_EQ(counted(true, 2) + counted(false, 2), 0u) << name(kind);
  }
}

// Of a gather that one's piece is, and the others' are not.
TEST_F(Joint, PiecesOfGathersAreStagedWhereNeitherOfTwoCan) {
  for (const Kind kind : {Kind::gather, Kind::gatherv}) {
    TeamOfThreads threads(ranks, options_of_own_cpus());
    count(threads);
    Team& root = threads.team(2);
    root.direct = std::make_unique<Narrowed>(std::move(root.direct), transport::Reach(uint32_t(1) << 15));
    threads.team(1).direct.reset();
    for (int call = 0; call < 2; ++call) {
      std::fill_n(counts_, ranks, Counting::Bytes());
      run(threads, row_of(kind, "joint"), 100'000, 2);
      EXPECT_EQ(counts_[1].all() + counted(true, 2), 0u) << name(kind);
      EXPECT_EQ(counted(false, 2), 100'000u * (ranks - 2)) << name(kind);
    }
  }
}

// Who gives what its cells hold does not wait for a root that is late.
TEST_F(Joint, GiversLeaveBeforeALateRoot) {
  for (const Kind kind : {Kind::gather, Kind::gatherv}) {
    TeamOptions options = options_of_own_cpus();
    options.cell_bytes = 256 << 10;
    TeamOfThreads threads(ranks, options);
    count(threads);
    std::atomic<int> gone{0};
    Plan plan{kind, ranks, 0, {}, std::vector<bool>(ranks, false)};
    for (int from = 0; from < ranks; ++from) plan.message.emplace_back(ranks, random_bytes(random_, 90'000));
    threads.run([&](Team& team) {
      Part part(plan, team.rank);
      for (int looks = 0; team.rank == 0 && gone < ranks - 1 && looks < 10'000; ++looks)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      STRETTO_TRY(row_of(kind, "joint").run(team, part.request()));
      if (team.rank != 0) ++gone;
      if (team.rank == 0) {
        EXPECT_EQ(gone, ranks - 1) << name(kind);
      }
      return part.right() ? Status::good() : invalid("wrong bytes", int(kind));
    });
    EXPECT_EQ(counted(true, 0) + counted(false, 0), 0u) << name(kind);
  }
}

TEST_F(Joint, IsStagedAgainWhereACopyIsRefused) {
  for (const Kind kind : rooted)
    for (const int refused : {1, 2})
      for (const uint64_t cut : {0, 1, 2}) {
        TeamOptions options = options_of_own_cpus();
        options.faults = [&](int rank) {
          transport::Faults faults;
          if (rank == refused) faults.cut_after = cut;
          return faults;
        };
        TeamOfThreads threads(ranks, options);
        for (int call = 0; call < 3; ++call) run(threads, row_of(kind, "joint"), 200'000, 2);
      }
}

// Of two of which one alone can copy, that one is refused in mid-course.
TEST_F(Joint, IsStagedAgainWhereWhoAloneCanIsRefused) {
  for (const Kind kind : rooted)
    for (const bool by_root : {false, true})
      for (const uint64_t cut : {0, 3}) {
        TeamOptions options = options_of_own_cpus();
        options.faults = [&](int rank) {
          transport::Faults faults;
          if ((rank == 2) == by_root) faults.cut_after = cut;
          return faults;
        };
        TeamOfThreads threads(ranks, options);
        for (int r = 0; r < ranks; ++r) {
          Team& team = threads.team(r);
          const transport::Reach none = r == 2 ? transport::Reach(uint32_t(1) << 15) : transport::Reach();
          if ((r == 2) != by_root) team.direct = std::make_unique<Narrowed>(std::move(team.direct), none);
        }
        for (int call = 0; call < 2; ++call) run(threads, row_of(kind, "joint"), 200'000, 2);
      }
}

// The root finds that one makes another call, and leaves; the others write nothing to it afterwards.
TEST_F(Joint, NothingIsWrittenToARootThatHasLeft) {
  for (const Kind kind : {Kind::gather, Kind::gatherv}) {
    TeamOfThreads threads(3, options_until_root_leaves());
    Team& root = threads.team(0);
    root.direct = std::make_unique<Narrowed>(std::move(root.direct), transport::Reach(uint32_t(1) << 15));
    Plan plan{kind, 3, 0, {}, std::vector<bool>(3, false)};
    for (int from = 0; from < 3; ++from) plan.message.emplace_back(3, random_bytes(random_, 8 << 20));
    Part part_of_root(plan, 0);
    Status of_root;
    bool intact = true;
    threads.run([&](Team& team) {
      Part own(plan, team.rank);
      Part& part = team.rank == 0 ? part_of_root : own;
      Request request = part.request();
      if (team.rank == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // while the other writes
        request.kind = Kind::scatter;
      }
      if (team.rank == 2) return post_label(team, request), Status::good();
      const Status status = row_of(kind, "joint").run(team, request);
      if (team.rank != 0) return Status::good();
      of_root = status;
      for (int r = 0; r < 3; ++r) std::memset(request.gets[r].data, 0, request.gets[r].bytes);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      for (int r = 0; r < 3; ++r)
        for (size_t i = 0; i < request.gets[r].bytes; ++i) intact = intact && static_cast<char*>(request.gets[r].data)[i] == 0;
      root_left = true;
      return Status::good();
    });
    EXPECT_EQ(of_root.code, Code::disagreed) << name(kind);
    EXPECT_TRUE(intact) << name(kind);
  }
}

// Rows that do not match, and sizes: found out, not taken for something else.
TEST_F(Joint, GathersThatDoNotMatchAreFoundOut) {
  const auto status_of_root = [&](const char* of_others, size_t theirs) {
    TeamOfThreads threads(3, options_until_root_leaves());
    Status of_root;
    threads.run([&](Team& team) {
      const size_t size = team.rank == 0 ? 64 << 10 : theirs;
      Plan plan{Kind::gather, 3, 0, {}, std::vector<bool>(3, false)};
      for (int from = 0; from < 3; ++from) plan.message.emplace_back(3, Bytes(size, 1));
      Part part(plan, team.rank);
      const Status status = row_of(Kind::gather, team.rank == 0 ? "joint" : of_others).run(team, part.request());
      if (team.rank == 0) of_root = status, root_left = true;
      return Status::good();
    });
    return of_root.code;
  };
  EXPECT_EQ(status_of_root("joint", 64 << 10), Code::ok);
  EXPECT_EQ(status_of_root("staged", 1000), Code::disagreed);
  EXPECT_EQ(status_of_root("joint", 60'000), Code::disagreed);
}

// Random sizes, roots and places, where every rank has a core.
TEST_F(Joint, DeliversWhatWasSent) {
  for (const Kind kind : rooted)
    for (const char* name : {"joint", "adaptive", "sized"}) {
      const Algorithm& row = row_of(kind, name);
      if (row.kind != kind) continue;
      for (const int size : {3, 4, 7}) {
        TeamOfThreads threads(size, options_of_own_cpus());
        for (int call = 0; call < in_time(12); ++call) {
          const auto bytes = [&] { return random_() % 4 == 0 ? random_() % 70 : random_() % 150'000; };
          const Plan plan = random_plan(kind, size, random_, bytes);
          threads.run([&](Team& team) {
            Part part(plan, team.rank);
            STRETTO_TRY(row.run(team, part.request()));
            return part.right() ? Status::good() : invalid("wrong bytes", int(kind));
          });
        }
      }
    }
}

// A root that is late, or another rank: the others do what they can meanwhile, and wait.
TEST_F(Joint, WaitsForWhoIsLate) {
  for (const Kind kind : rooted)
    for (const int late : {0, 3}) {
      TeamOfThreads threads(ranks, options_of_own_cpus());
      Plan plan{kind, ranks, 0, {}, std::vector<bool>(ranks, false)};
      for (int from = 0; from < ranks; ++from) plan.message.emplace_back(ranks, random_bytes(random_, 90'000));
      threads.run([&](Team& team) {
        Part part(plan, team.rank);
        if (team.rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(120));  // long enough to be asked after
        STRETTO_TRY(row_of(kind, "joint").run(team, part.request()));
        return part.right() ? Status::good() : invalid("wrong bytes", int(kind));
      });
    }
}

// Whoever has come long ago may have died since: nothing is written to a process that has its number now.
TEST_F(Joint, WritesNothingToTheDead) {
  for (const Kind kind : {Kind::scatter, Kind::scatterv}) {
    TeamOptions options = options_of_own_cpus();
    options.hooks.alive = [](void*, int) { return false; };
    TeamOfThreads threads(3, options);
    Plan plan{kind, 3, 0, {}, std::vector<bool>(3, false)};
    for (int from = 0; from < 3; ++from) plan.message.emplace_back(3, random_bytes(random_, 90'000));
    const int late = 0;  // who writes
    std::vector<Status> statuses(3);
    std::vector<std::unique_ptr<Part>> parts(3);  // who is taken for dead may still read what the first to leave had
    threads.run([&](Team& team) {
      Part& part = *(parts[size_t(team.rank)] = std::make_unique<Part>(plan, team.rank));
      if (team.rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(150));
      statuses[size_t(team.rank)] = row_of(kind, "joint").run(team, part.request());
      return Status::good();
    });
    EXPECT_EQ(statuses[size_t(late)].code, Code::peer_lost) << name(kind);
  }
}

}  // namespace
}  // namespace stretto::collective
