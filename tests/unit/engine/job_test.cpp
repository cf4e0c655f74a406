// The engine between processes: who the ranks are, joining, the pool; without MPI.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "collective/board.hpp"
#include "engine/identity.hpp"
#include "platform/topology.hpp"
#include "unit/engine/processes.hpp"

namespace stretto::engine {
namespace {

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
  char a[256], b[256];
  identify_launch("one", a, sizeof a);
  identify_launch("two", b, sizeof b);
  EXPECT_STRNE(a, b);
}

TEST(Identity, SlurmListsTheRanksOfAllNodes) {
  struct Case {
    const char *list, *node;
    int size;
  };
  setenv("SLURM_LOCALID", "1", 1);
  setenv("SLURM_STEP_NUM_TASKS", "9", 1);
  for (const Case& one : std::initializer_list<Case>{{"2", "0", 2},
                                                     {"4(x2)", "1", 4},
                                                     {"4(x2)", "2", -1},
                                                     {"4(x2),8", "2", 8},
                                                     {"3,4(x10),2(x2)", "0", 3},
                                                     {"3,4(x10),2(x2)", "10", 4},
                                                     {"3,4(x10),2(x2)", "12", 2},
                                                     {"3,4(x10),1", "11", -1},  // fewer than this rank's number
                                                     {"2,", "1", -1},
                                                     {"4(x", "0", -1},
                                                     {"4(x2", "0", -1},
                                                     {"4(x-1),3", "0", -1},
                                                     {"99999999999999999999", "0", -1},
                                                     {"4;3", "0", -1},
                                                     {"", "0", -1},
                                                     {"2", "-1", -1},
                                                     {"2", "", -1}}) {
    setenv("SLURM_STEP_TASKS_PER_NODE", one.list, 1);
    setenv("SLURM_NODEID", one.node, 1);
    EXPECT_EQ(locality().size, one.size) << one.list << " on " << one.node;
    EXPECT_EQ(locality().world, one.size < 0 ? -1 : 9);
  }
  unsetenv("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_EQ(locality().rank, -1);
  for (const char* name : {"SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NUM_TASKS"}) unsetenv(name);
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

// However many ranks notice that something is missing, one says so.
TEST(Job, OneRankSpeaks) {
  for (const int missing : {0, 1}) {
    const std::string job = unique_job();
    make_stand(4);
    in_processes(4, [&](int rank) {
      Job* joined = new Job;
      const bool joins = rank != missing && joined->join(place_of(rank, 4, job), quick(300), rules_of("barrier flat")).ok();
      stand->read.fetch_add(joined->speaks());
      stand_all(nullptr, true);
      return !joins;
    });
    EXPECT_EQ(stand->read.load(), 1u) << "rank " << missing << " is missing";
  }
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

TEST_F(PoolTest, TellsWhatIsZeroAndWhatWasUsed) {
  Pool pool(header_, &segment_);
  for (bool again : {false, true, true}) {
    bool used = !again;
    const uint64_t offset = pool.allocate(5000, &used);
    ASSERT_NE(offset, 0u);
    EXPECT_EQ(used, again);
    auto* bytes = static_cast<char*>(segment_.at(offset));
    EXPECT_EQ(std::count(bytes, bytes + 5000, 0) == 5000, !again);
    std::memset(bytes, 1, 5000);
    pool.release(offset, 5000);
  }
}

TEST_F(PoolTest, ZerosWhereTheyAreAskedFor) {
  Pool pool(header_, &segment_);
  for (int again = 0; again < 3; ++again) {
    std::atomic<uint64_t> place{0};
    const uint64_t offset = pool.allocate_once(place, 5000, Pool::Contents::zeros, 0, 1);
    ASSERT_GT(offset, 1u);
    auto* bytes = static_cast<char*>(segment_.at(offset));
    EXPECT_EQ(std::count(bytes, bytes + 5000, 0), 5000) << again;
    std::memset(bytes, 1, 5000);
    pool.release(offset, 5000);
  }
}

// A board that was used is as a new one: all that ranks announce by is zero again.
TEST(Board, IsUsedAgain) {
  using collective::Board;
  constexpr int ranks = 3;
  std::vector<char> memory(Board::bytes(ranks) + alignof(Board), 1);
  void* at = memory.data();
  size_t room = memory.size();
  auto* board = static_cast<Board*>(std::align(alignof(Board), Board::bytes(ranks), at, room));
  board->clear(ranks);
  EXPECT_EQ(board->stage + board->presence + board->left + board->abandoned, 0u);
  for (int r = 0; r < ranks; ++r) {
    collective::RankBoard& of = board->ranks[r];
    for (const collective::Signal* signal : {&of.done, &of.filled, &of.reduced, &of.drained, &of.partial, &of.spread})
      EXPECT_EQ(signal->value + signal->sleepers + signal->note, 0u);
    EXPECT_EQ(of.came + of.stuck_in + of.stuck_with, 0u);
    for (const auto& vector : of.filled_of) EXPECT_EQ(vector, 0u);
    for (const auto& stamp : of.arrivals.stamps) EXPECT_EQ(stamp, 0u);
    of.clear_late_slots();
    for (uint64_t number = 0; number < 2 * collective::slot_ring_grows_at; ++number)
      for (const auto* slot : {&of.slots[collective::slot_of(number)], &of.meeting(number)})
        EXPECT_EQ(slot->ready.value + slot->ready.sleepers + slot->ready.note + slot->payload[0], 0u);
  }
}

TEST_F(PoolTest, TheCapHolds) {
  Pool pool(header_, &segment_);
  int got = 0;
  while (pool.allocate(1 << 20)) ++got;
  EXPECT_EQ(got, 8);
  EXPECT_EQ(pool.allocate(uint64_t(65) << 20), 0u);
}

// Room for one: all who ask for it at the same time find that one.
TEST_F(PoolTest, AllFindWhatTheFirstTakes) {
  constexpr int ranks = 4, rounds = 300;
  constexpr uint64_t most = 8 << 20;
  Pool pool(header_, &segment_);
  std::barrier meeting(ranks);
  std::atomic<uint64_t> place{0};
  uint64_t found[ranks];
  auto rank = [&](int r) {
    for (int round = 0; round < rounds; ++round) {
      meeting.arrive_and_wait();
      found[r] = pool.allocate_once(place, most, Pool::Contents::any, 3, 1);
      meeting.arrive_and_wait();
      if (r != 0) continue;
      for (uint64_t each : found) EXPECT_EQ(each, place);
      EXPECT_EQ(place & 4095, 3u);
      EXPECT_EQ(pool.in_use(), most);
      pool.release(place & ~uint64_t(4095), most);
      place = 0;
    }
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(rank, r);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PoolTest, WithoutRoomAllFindThat) {
  Pool pool(header_, &segment_);
  const uint64_t most = pool.allocate(8 << 20);
  std::atomic<uint64_t> place{0};
  EXPECT_EQ(pool.allocate_once(place, 4096, Pool::Contents::zeros, 0, 0), 0u);
  EXPECT_EQ(pool.allocate_once(place, 4096, Pool::Contents::zeros, 0, 1), 1u);
  pool.release(most, 8 << 20);
  EXPECT_EQ(pool.allocate_once(place, 4096, Pool::Contents::zeros, 0, 0), 1u);  // as all before were told
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

}  // namespace
}  // namespace stretto::engine
