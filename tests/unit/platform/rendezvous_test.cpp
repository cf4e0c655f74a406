#include "platform/rendezvous.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "platform/rendezvous_wire.hpp"
#include "platform/shared_memory.hpp"
#include "unit/platform/child.hpp"

namespace stretto::platform {
namespace {

using namespace stretto::testing;

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t plenty = 20'000 * ms;

// Different for every test and every run.
std::string job_name() {
  return std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + std::to_string(getpid());
}

std::string hash_of(const std::string& job) {
  char text[64];
  hash_job(job.c_str(), text);
  return text;
}

int new_object() {
  int fd = -1;
  return create_shared_object("test", 4096, &fd).ok() ? fd : -1;
}

bool same_object(int a, int b) {
  struct stat x, y;
  return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

std::atomic<uint32_t>* map_words(int fd) {
  void* address = nullptr;
  return map_shared_object(fd, 0, 4096, &address).ok() ? static_cast<std::atomic<uint32_t>*>(address) : nullptr;
}

// One rank as a process of its own: after the rendezvous all must see all others' words in the object.
int run_rank(const std::string& job, int rank, int size, unsigned late_us) {
  int before = open_descriptors(), fd = -1;
  usleep(late_us);
  {
    Rendezvous rendezvous;
    CHILD_REQUIRE(rendezvous.open(job.c_str(), rank).ok());
    if (rank == 0) {
      CHILD_REQUIRE((fd = new_object()) >= 0);
      CHILD_REQUIRE(rendezvous.give(fd, size, now_ns() + plenty).ok());
    } else {
      CHILD_REQUIRE(rendezvous.take(&fd, now_ns() + plenty).ok());
    }
  }
  CHILD_REQUIRE((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  std::atomic<uint32_t>* words = map_words(fd);
  CHILD_REQUIRE(words != nullptr);
  close(fd);
  CHILD_REQUIRE(open_descriptors() == before);
  words[rank].store(1);
  for (int peer = 0; peer < size; ++peer)
    while (words[peer].load() == 0) std::this_thread::yield();
  return 0;
}

void meet(const std::vector<unsigned>& late_us) {
  std::string job = job_name();
  std::vector<pid_t> children;
  for (int rank = 0; rank < int(late_us.size()); ++rank)
    children.push_back(start_child([&] { return run_rank(job, rank, int(late_us.size()), late_us[rank]); }));
  for (size_t rank = 0; rank < children.size(); ++rank) EXPECT_EQ(finish_child(children[rank]), 0) << "rank " << rank;
}

TEST(Rendezvous, FourProcessesMeet) {
  meet({0, 0, 0, 0});
}
TEST(Rendezvous, LeaderComesLast) {
  meet({60'000, 0, 1'000, 20'000});
}
TEST(Rendezvous, LeaderComesFirst) {
  meet({0, 60'000, 5'000, 30'000});
}
TEST(Rendezvous, MoreRanksThanAQueueHolds) {
  meet(std::vector<unsigned>(40, 0));
}

TEST(Rendezvous, AloneNeedsNobody) {
  Rendezvous leader;
  ASSERT_TRUE(leader.open(job_name().c_str(), 0).ok());
  EXPECT_TRUE(leader.give(0, 1, 0).ok());
}

// Runs rank 1's take in a thread while `leader` acts.
Status take_while(const std::string& job, int* fd, const std::function<void()>& leader) {
  Status taken;
  std::thread taker([&] {
    Rendezvous rank;
    taken = rank.open(job.c_str(), 1);
    if (taken.ok()) taken = rank.take(fd, now_ns() + plenty);
  });
  leader();
  taker.join();
  return taken;
}

TEST(Rendezvous, MissingRankIsTimedOutAndTheOthersAreServed) {
  std::string job = job_name();
  int before = open_descriptors(), object = new_object(), fd = -1;
  Status given;
  uint64_t begin = now_ns();
  Status taken = take_while(job, &fd, [&] {
    Rendezvous leader;
    ASSERT_TRUE(leader.open(job.c_str(), 0).ok());
    given = leader.give(object, 4, now_ns() + 300 * ms);
  });
  EXPECT_EQ(given.code, Code::timed_out);
  EXPECT_EQ(given.detail, 2);
  EXPECT_GE(now_ns() - begin, 300 * ms);
  ASSERT_TRUE(taken.ok()) << taken.what;
  EXPECT_TRUE(same_object(fd, object));
  close(fd);
  close(object);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Rendezvous, MissingLeaderIsTimedOut) {
  Rendezvous rank;
  ASSERT_TRUE(rank.open(job_name().c_str(), 1).ok());
  int fd = -1;
  EXPECT_EQ(rank.take(&fd, now_ns() + 50 * ms).code, Code::timed_out);
  EXPECT_EQ(fd, -1);
}

TEST(Rendezvous, OneOfTheRanksThatMissTheLeaderSpeaks) {
  const std::string job = job_name();
  Rendezvous one, two;
  EXPECT_FALSE(two.claim_voice());
  ASSERT_TRUE(one.open(job.c_str(), 1).ok());
  ASSERT_TRUE(two.open(job.c_str(), 2).ok());
  int fd = -1;
  EXPECT_STREQ(two.take(&fd, now_ns() + 20 * ms).what, "local rank 0 does not run Stretto");
  EXPECT_TRUE(two.claim_voice());
  two.close();
  EXPECT_FALSE(one.claim_voice());
  EXPECT_FALSE(one.claim_voice());
}

TEST(Rendezvous, OtherJobsDoNotMeet) {
  Rendezvous leader, stranger;
  ASSERT_TRUE(leader.open((job_name() + "a").c_str(), 0).ok());
  ASSERT_TRUE(stranger.open((job_name() + "b").c_str(), 1).ok());
  int fd = -1;
  EXPECT_EQ(stranger.take(&fd, now_ns() + 20 * ms).code, Code::timed_out);
  EXPECT_EQ(leader.give(0, 2, now_ns() + 20 * ms).detail, 1);
}

TEST(Rendezvous, TakenAddressIsRefusedAndFreeAfterClose) {
  std::string job = job_name();
  Rendezvous first, second;
  ASSERT_TRUE(first.open(job.c_str(), 1).ok());
  Status status = second.open(job.c_str(), 1);
  EXPECT_EQ(status.code, Code::refused);
  EXPECT_EQ(status.detail, EADDRINUSE);
  first.close();
  EXPECT_TRUE(second.open(job.c_str(), 1).ok());
}

TEST(Rendezvous, MisuseIsInvalid) {
  Rendezvous closed, leader;
  int fd = -1;
  EXPECT_EQ(closed.give(0, 2, 0).code, Code::invalid);
  EXPECT_EQ(closed.take(&fd, 0).code, Code::invalid);
  ASSERT_TRUE(leader.open(job_name().c_str(), 0).ok());
  EXPECT_EQ(leader.take(&fd, 0).code, Code::invalid);
}

Message object_for(const std::string& job, int rank) {
  Message message;
  message.kind = Kind::object;
  message.local_rank = rank;
  memcpy(message.job_hash, hash_of(job).data(), sizeof message.job_hash);
  return message;
}

// Datagrams that look right in all but one thing, each with a descriptor.
void send_nonsense(const std::string& job) {
  Address rank = rank_address(getuid(), hash_of(job).c_str(), 1);
  int socket = -1, wrong = new_object();
  Address own;  // of nobody that the job knows
  own = rank_address(getuid(), hash_of(job).c_str(), 9);
  ASSERT_TRUE(bind_socket(own, &socket).ok());
  while (send_message(socket, rank, object_for(job, 1), wrong) == ECONNREFUSED) std::this_thread::yield();
  Message odd = object_for(job, 1);
  odd.magic[7] = '0';
  EXPECT_EQ(send_message(socket, rank, odd, wrong), 0);
  EXPECT_EQ(sendto(socket, "?", 1, 0, reinterpret_cast<const sockaddr*>(&rank.name), rank.bytes), 1);
  EXPECT_EQ(send_message(socket, rank, object_for(job, 1), -1), 0);
  close(socket);
  close(wrong);
}

// What comes from local rank 0's own address, but for another rank, of another kind, or without its descriptor.
void send_stale(const std::string& job) {
  Address rank = rank_address(getuid(), hash_of(job).c_str(), 1);
  int socket = -1, wrong = new_object();
  ASSERT_TRUE(bind_socket(rank_address(getuid(), hash_of(job).c_str(), 0), &socket).ok());
  Message greeting = object_for(job, 1);
  greeting.kind = Kind::greeting;
  EXPECT_EQ(send_message(socket, rank, object_for(job, 2), wrong), 0);
  EXPECT_EQ(send_message(socket, rank, greeting, wrong), 0);
  EXPECT_EQ(send_message(socket, rank, object_for(job + "x", 1), wrong), 0);
  EXPECT_EQ(send_message(socket, rank, object_for(job, 1), -1), 0);
  close(socket);
  close(wrong);
}

TEST(Rendezvous, ForeignAndStaleDatagramsAreIgnored) {
  std::string job = job_name();
  int before = open_descriptors(), object = new_object(), fd = -1;
  {
    Rendezvous rank, leader;
    ASSERT_TRUE(rank.open(job.c_str(), 1).ok());
    send_nonsense(job);
    send_stale(job);
    ASSERT_TRUE(leader.open(job.c_str(), 0).ok());
    std::thread giver([&] { EXPECT_TRUE(leader.give(object, 2, now_ns() + plenty).ok()); });
    EXPECT_TRUE(rank.take(&fd, now_ns() + plenty).ok());
    giver.join();
  }
  EXPECT_TRUE(same_object(fd, object));
  close(fd);
  close(object);
  EXPECT_EQ(open_descriptors(), before);
}

bool become_another_user() {
  constexpr uid_t other = 65533;
  return getuid() != other && setresuid(other, other, other) == 0;
}

// Another user holds local rank 0's address and offers an object that looks right in everything else.
TEST(Rendezvous, ObjectsOfAnotherUserAreIgnored) {
  std::string job = job_name();
  uint32_t user = getuid();
  Rendezvous rank;
  ASSERT_TRUE(rank.open(job.c_str(), 1).ok());
  int before = open_descriptors();
  int code = exit_code_of([&] {
    int object = new_object(), socket = -1;
    if (!become_another_user()) return child_skipped;
    CHILD_REQUIRE(bind_socket(rank_address(user, hash_of(job).c_str(), 0), &socket).ok());
    CHILD_REQUIRE(send_message(socket, rank_address(user, hash_of(job).c_str(), 1), object_for(job, 1), object) == 0);
    return 0;
  });
  if (code == child_skipped) GTEST_SKIP() << "cannot become another user";
  ASSERT_EQ(code, 0);
  int fd = -1;
  EXPECT_EQ(rank.take(&fd, now_ns() + 50 * ms).code, Code::timed_out);
  EXPECT_EQ(fd, -1);
  EXPECT_EQ(open_descriptors(), before);
}

// Another user holds rank 1's address and greets: it is owed nothing.
TEST(Rendezvous, AnotherUserIsNotServed) {
  std::string job = job_name();
  uint32_t user = getuid();
  Rendezvous leader;
  ASSERT_TRUE(leader.open(job.c_str(), 0).ok());
  int object = new_object();
  pid_t child = start_child([&] {
    int socket = -1;
    if (!become_another_user()) return child_skipped;
    CHILD_REQUIRE(bind_socket(rank_address(user, hash_of(job).c_str(), 1), &socket).ok());
    Message greeting = object_for(job, 1);
    greeting.kind = Kind::greeting;
    CHILD_REQUIRE(send_message(socket, rank_address(user, hash_of(job).c_str(), 0), greeting, -1) == 0);
    usleep(200'000);
    Letter letter;
    CHILD_REQUIRE(receive_letter(socket, &letter) == EAGAIN);
    return 0;
  });
  Status given = leader.give(object, 2, now_ns() + 150 * ms);
  int code = finish_child(child);
  close(object);
  if (code == child_skipped) GTEST_SKIP() << "cannot become another user";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(given.code, Code::timed_out);
}

TEST(Rendezvous, SignalsDoNotDisturb) {
  std::string job = job_name();
  int code = exit_code_of([&] {
    struct sigaction action = {};
    action.sa_handler = [](int) {};  // without SA_RESTART: system calls return EINTR
    sigaction(SIGALRM, &action, nullptr);
    itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, nullptr);
    int object = new_object(), fd = -1;
    Status given;
    Status taken = take_while(job, &fd, [&] {
      Rendezvous leader;
      for (uint64_t until = now_ns() + 50 * ms; now_ns() < until;) usleep(10'000);
      given = leader.open(job.c_str(), 0);
      if (given.ok()) given = leader.give(object, 2, now_ns() + plenty);
    });
    CHILD_REQUIRE(given.ok() && taken.ok());
    CHILD_REQUIRE(same_object(fd, object));
    return 0;
  });
  EXPECT_EQ(code, 0);
}

// Everybody's descriptor comes to everybody, also when more ranks send at once than a socket's queue holds.
TEST(Swap, AllToAll) {
  for (int size : {1, 2, 5, 24}) {
    std::string job = job_name() + std::to_string(size);
    int before = open_descriptors();
    std::vector<int> own(static_cast<size_t>(size));
    std::vector<std::vector<int>> got(size_t(size), std::vector<int>(size_t(size), -7));
    std::vector<Rendezvous> rendezvous(static_cast<size_t>(size));
    for (int r = 0; r < size; ++r) {
      own[size_t(r)] = new_object();
      ASSERT_TRUE(rendezvous[size_t(r)].open(job.c_str(), r).ok());
    }
    std::vector<std::thread> ranks;
    for (int r = 0; r < size; ++r)
      ranks.emplace_back([&, r] {
        Status status = rendezvous[size_t(r)].swap(own[size_t(r)], size, got[size_t(r)].data(), now_ns() + plenty);
        EXPECT_TRUE(status.ok()) << status.what;
        rendezvous[size_t(r)].close();
      });
    for (auto& rank : ranks) rank.join();
    for (int r = 0; r < size; ++r)
      for (int peer = 0; peer < size; ++peer) {
        int fd = got[size_t(r)][size_t(peer)];
        EXPECT_EQ(fd >= 0, peer != r);
        EXPECT_EQ(same_object(fd, own[size_t(peer)]), peer != r);
        if (fd >= 0) ::close(fd);
      }
    for (int fd : own) ::close(fd);
    EXPECT_EQ(open_descriptors(), before);
  }
}

TEST(Swap, AMissingRankIsATimeout) {
  Rendezvous one;
  std::string job = job_name();
  ASSERT_TRUE(one.open(job.c_str(), 0).ok());
  int own = new_object(), got[2];
  Status status = one.swap(own, 2, got, now_ns() + 20 * ms);
  EXPECT_EQ(status.code, Code::timed_out);
  EXPECT_EQ(got[1], -1);
  ::close(own);
}

}  // namespace
}  // namespace stretto::platform
