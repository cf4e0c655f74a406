// The engine between processes: joining, the pool, communicators; without MPI.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/communicator.hpp"
#include "engine/identity.hpp"
#include "platform/topology.hpp"

namespace stretto::engine {
namespace {

using collective::Kind;
using collective::Request;

std::string unique_job() {
  static int counter = 0;
  return "engine-test-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
}

// Runs body(rank) in `ranks` processes; each must return true.
void in_processes(int ranks, const std::function<bool(int)>& body) {
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    pid_t child = fork();
    if (child == 0) _exit(body(r) ? 0 : 1);
    children.push_back(child);
  }
  for (int r = 0; r < ranks; ++r) {
    int status = 0;
    waitpid(children[size_t(r)], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << r << " status " << status;
  }
}

select::Rules rules_of(const char* text) {
  select::Rules rules;
  EXPECT_TRUE(select::parse_rules(text, std::strlen(text), &rules).ok());
  return rules;
}

Settings quick(uint64_t timeout_ms = 20000) {
  Settings settings;
  settings.join_timeout_ms = timeout_ms;
  return settings;
}

Place place_of(int rank, int size, const std::string& job) {
  return {rank, size, rank, size, job.c_str()};
}

// Stands in for MPI while a communicator is made: a word that rank 0 sets in memory the processes share.
struct Stand {
  std::atomic<uint64_t> value{0};
  std::atomic<uint32_t> set{0}, votes{0}, yes{0}, read{0};
  int size = 0;
};
Stand* stand;
int stand_rank;

bool stand_broadcast(void*, void* data, int) {
  if (stand_rank == 0) {
    stand->value = *static_cast<uint64_t*>(data);
    stand->set.fetch_add(1);
  }
  while (stand->set.load() == 0) usleep(100);
  *static_cast<uint64_t*>(data) = stand->value;
  return true;
}

bool stand_all(void*, bool own) {
  stand->yes.fetch_add(own);
  stand->votes.fetch_add(1);
  while (stand->votes.load() < uint32_t(stand->size)) usleep(100);
  return stand->yes.load() == uint32_t(stand->size);
}

void make_stand(int size) {
  stand = new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Stand;
  stand->size = size;
}

Policy policy_of(const select::Rules* rules, select::Travel travel = select::Travel::by_rules) {
  Policy policy;
  policy.rules = rules;
  policy.travel = travel;
  policy.host.broadcast = stand_broadcast;
  policy.host.all = stand_all;
  return policy;
}

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

TEST(Job, RanksJoinAndKnowEachOther) {
  std::string job = unique_job();
  make_stand(4);
  in_processes(4, [&](int rank) {
    auto joined = std::make_unique<Job>();
    if (!joined->join(place_of(rank, 4, job), quick(), rules_of("barrier flat")).ok()) return false;
    for (int r = 0; r < 4; ++r)
      if (joined->member_of(r) != r || !joined->alive(r)) return false;
    stand_all(nullptr, true);  // nobody leaves before all have looked
    return joined->member_of(4) == -1 && joined->member_of(-32766) == -1;
  });
}

TEST(Job, MissingRankIsNoticedInTime) {
  std::string job = unique_job();
  in_processes(3, [&](int rank) {
    if (rank == 1) return true;
    Job* joined = new Job;
    return joined->join(place_of(rank, 3, job), quick(300), rules_of("barrier flat")).code == Code::timed_out &&
           !joined->joined();
  });
}

TEST(Job, LeaderMissingIsNoticedInTime) {
  std::string job = unique_job();
  in_processes(3, [&](int rank) {
    if (rank == 0) return true;
    Job* joined = new Job;
    return !joined->join(place_of(rank, 3, job), quick(300), rules_of("barrier flat")).ok();
  });
}

TEST(Job, DifferentSettingsOrRulesKeepEverybodyOut) {
  for (int what : {0, 1}) {
    std::string job = unique_job();
    in_processes(3, [&](int rank) {
      Settings settings = quick();
      if (what == 0 && rank == 2) settings.transport = "cma";
      Job* joined = new Job;
      Status status =
          joined->join(place_of(rank, 3, job), settings, rules_of(what == 1 && rank == 1 ? "barrier mpi" : "barrier flat"));
      return status.code == Code::refused && !joined->joined();
    });
  }
}

TEST(Job, CrowdedMeansRanksOutnumberCpus) {
  Member members[4] = {};
  for (int i = 0; i < 4; ++i) members[i].cpus.add(i);
  EXPECT_FALSE(crowded(members, 4));
  members[3].cpus = members[2].cpus;
  EXPECT_TRUE(crowded(members, 4));
  for (auto& member : members) {
    member.cpus = {};
    for (int c = 0; c < 4; ++c) member.cpus.add(c);
  }
  EXPECT_FALSE(crowded(members, 4));
  for (auto& member : members) member.cpu_quota = 2;
  EXPECT_TRUE(crowded(members, 4));
}

TEST(Job, DomainsAreCountedOnce) {
  Member members[5] = {};
  EXPECT_EQ(domains_of(members, 5), 1);
  const int32_t where[] = {3, platform::no_place, 3, 0, platform::no_place};
  for (int i = 0; i < 5; ++i) members[i].domain = where[i];
  EXPECT_EQ(domains_of(members, 5), 3);
  EXPECT_EQ(domains_of(members, 1), 1);
}

// Each rank reads its own line of a made-up machine, and every rank learns of all.
TEST(Job, AllRanksKnowWhereEachStands) {
  constexpr int size = 4;
  std::string job = unique_job(), path = ::testing::TempDir() + job;
  std::ofstream(path + ".wrong") << "rank 0..1 node=0\n";
  std::ofstream(path) << "rank 0..1 socket=0 numa=0 cache=7\nrank 2 socket=0 numa=5\n";
  for (const char* level : {"numa", "socket", "none"}) {
    std::string one = job + level;
    in_processes(size, [&](int rank) {
      Settings settings = quick();
      settings.topology = path.c_str();
      settings.domain = level;
      Job* joined = new Job;
      if (!joined->join(place_of(rank, size, one), settings, rules_of("barrier flat")).ok()) return false;
      std::vector<int32_t> expected(size, platform::no_place);  // rank 3 is not in the file
      if (std::string(level) == "numa") expected = {0, 0, 5, platform::no_place};
      if (std::string(level) == "socket") expected = {0, 0, 0, platform::no_place};
      for (int r = 0; r < size; ++r)
        if (joined->member(r).domain != expected[size_t(r)]) return false;
      return joined->domains() == (level[0] == 'n' && level[1] == 'u' ? 3 : level[0] == 's' ? 2 : 1);
    });
  }
  // A file that is not there or does not read is no reason to stay away: the system's topology counts.
  for (const char* ending : {".wrong", ".missing"}) {
    std::string wrong = path + ending;
    in_processes(size, [&](int rank) {
      Settings settings = quick();
      settings.topology = wrong.c_str();
      Job* joined = new Job;
      return joined->join(place_of(rank, size, job + ending), settings, rules_of("barrier flat")).ok() && joined->domains() == 1;
    });
  }
  std::remove(path.c_str());
  std::remove((path + ".wrong").c_str());
}

class PoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(segment_.create().ok());
    header_ = static_cast<PoolHeader*>(segment_.at(0));
    ASSERT_TRUE(Pool::initialise(header_, 4096, 8 << 20, segment_.bytes()).ok());
  }
  Segment segment_;
  PoolHeader* header_ = nullptr;
};

TEST_F(PoolTest, ExtentsDoNotOverlapAndAreReused) {
  Pool pool(header_, &segment_);
  std::set<uint64_t> taken;
  for (int i = 0; i < 100; ++i) {
    uint64_t offset = pool.allocate(5000);
    ASSERT_NE(offset, 0u);
    ASSERT_EQ(offset % 8192, 0u);
    ASSERT_TRUE(taken.insert(offset).second);
    std::memset(segment_.at(offset), i, 5000);
  }
  for (uint64_t offset : taken) pool.release(offset, 5000);
  EXPECT_EQ(pool.in_use(), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(taken.count(pool.allocate(5000)), 1u);
}

TEST_F(PoolTest, TheCapHolds) {
  Pool pool(header_, &segment_);
  int got = 0;
  while (pool.allocate(1 << 20)) ++got;
  EXPECT_EQ(got, 8);
  EXPECT_EQ(pool.allocate(uint64_t(65) << 20), 0u);
}

TEST_F(PoolTest, DeathUnderTheLockClosesThePoolWithoutHanging) {
  Pool pool(header_, &segment_);
  // The mapping is not inherited by fork, so the child maps the object anew.
  int fd = dup(segment_.fd());
  pid_t child = fork();
  if (child == 0) {
    Segment* mine = new Segment;
    mine->adopt(fd, uint64_t(64) << 20);
    pthread_mutex_lock(&static_cast<PoolHeader*>(mine->at(0))->lock);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  close(fd);
  EXPECT_EQ(pool.allocate(4096), 0u);
  EXPECT_EQ(pool.allocate(4096), 0u);
}

// A rank that has joined `name`'s job and made a communicator of all its ranks; null where that failed. Never freed.
struct Joined {
  Job* job = new Job;
  select::Rules* rules = new select::Rules(rules_of(select::default_rules()));
  Policy* policy = nullptr;
  Communicator* communicator = nullptr;

  Joined(int rank, int size, const std::string& name, const Settings& settings = quick(),
         select::Travel travel = select::Travel::by_rules) {
    stand_rank = rank;
    if (!job->join(place_of(rank, size, name), settings, *rules).ok()) return;
    policy = new Policy(policy_of(rules, travel));
    std::vector<int> members;
    for (int r = 0; r < size; ++r) members.push_back(r);
    communicator = Communicator::create(*job, *policy, members.data(), size, rank, nullptr);
  }

  // Leaves the communicator; when all have, the pool must be as it was.
  bool everything_is_given_back(int size) {
    communicator->let_go();
    stand->read.fetch_add(1);
    while (stand->read.load() < uint32_t(size)) usleep(100);
    return job->pool().in_use() == 0;
  }
};

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

TEST(Communicators, DeathOfARankIsReportedToTheOthers) {
  constexpr int size = 3;
  std::string job = unique_job();
  make_stand(size);
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      Communicator* communicator = Joined(rank, size, job).communicator;
      if (communicator == nullptr) _exit(2);
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

TEST(Identity, LaunchersTellTheirRanks) {
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
  EXPECT_EQ(locality().rank, 1);
  EXPECT_EQ(locality().size, 3);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);  // nonsense is no answer
  EXPECT_EQ(locality().rank, -1);
  unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
  setenv("MPI_LOCALRANKID", "0", 1);
  setenv("MPI_LOCALNRANKS", "2x", 1);
  EXPECT_EQ(locality().rank, -1);
  setenv("MPI_LOCALNRANKS", "2", 1);
  EXPECT_EQ(locality().size, 2);
  unsetenv("MPI_LOCALRANKID");
  setenv("SLURM_LOCALID", "3", 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2)", 1);
  EXPECT_EQ(locality().size, 4);
  setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2),8", 1);  // nodes differ: not said which this is
  EXPECT_EQ(locality().size, -1);
  unsetenv("SLURM_LOCALID");
  char a[256], b[256];
  identify_launch("one", a, sizeof a);
  identify_launch("two", b, sizeof b);
  EXPECT_STRNE(a, b);
}

}  // namespace
}  // namespace stretto::engine
