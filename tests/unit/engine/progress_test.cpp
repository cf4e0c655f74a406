// Operations in their queues, driven by several threads; the algorithms are stand-ins that wait for a signal now and then.
#include "engine/progress.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/communicator.hpp"
#include "engine/helper.hpp"

namespace stretto::engine {
namespace {

constexpr int waits = 5;

// One communicator whose peer, a thread of this process, announces steps.
struct Peer {
  collective::Signal signal;
  std::atomic<uint64_t> finished{0};  // operations, in their order
};

struct One final : Operation {
  One(Progress& progress, Communicator& c, Queue& q, Peer& p, uint64_t n)
      : Operation(progress), communicator(c), queue(q), peer(p), number(n) {}
  static void body(void* self) {
    auto& one = *static_cast<One*>(self);
    one.take_turn(one.communicator, one.queue);
    one.in_order = one.peer.finished.load(std::memory_order_relaxed) == one.number;
    for (uint64_t i = 1; i <= waits; ++i) {
      const uint64_t target = one.number * waits + i;
      while (one.peer.signal.value.load(std::memory_order_acquire) < target) one.suspend({one.peer.signal, target, 0});
      one.plain += int(i);  // not atomic: the thread sanitizer sees whether threads take turns properly
    }
    one.peer.finished.fetch_add(1, std::memory_order_relaxed);
    one.end_turn();
    one.ended = true;
  }
  Communicator& communicator;
  Queue& queue;
  Peer& peer;
  const uint64_t number;
  bool in_order = false, ended = false;
  int plain = 0;
};

class Operations {
 public:
  Operations(int queues, int each) : peers_(size_t(queues)), queues_(size_t(queues)) {
    for (int n = 0; n < each; ++n)
      for (size_t q = 0; q < queues_.size(); ++q) {
        all_.push_back(std::make_unique<One>(progress, communicator_, queues_[q], peers_[q], uint64_t(n)));
        One& one = *all_.back();
        one.start(One::body, &one);
        EXPECT_EQ(one.stage(), Operation::Stage::queued);
        progress.enqueue(one);
      }
  }

  // The peers, each announcing its steps.
  void announce() {
    for (uint64_t step = 1; step <= all_.size() / queues_.size() * waits; ++step)
      for (Peer& peer : peers_) peer.signal.value.store(step, std::memory_order_release);
  }

  bool anybody_sleeps() const { return peers_[0].signal.sleepers.load() != 0; }

  // Ends what is executed; returns how many.
  size_t finish() {
    size_t count = 0;
    while (Operation* operation = progress.take_executed()) {
      operation->resume();
      communicator_.let_go();
      ++count;
    }
    return count;
  }

  size_t size() const { return all_.size(); }
  void check() const {
    for (const auto& one : all_) {
      EXPECT_TRUE(one->in_order && one->ended);
      EXPECT_EQ(one->plain, waits * (waits + 1) / 2);
    }
    for (const Queue& queue : queues_) EXPECT_EQ(queue.length.load(), 0u);
    EXPECT_EQ(progress.queued().load(), 0u);
  }

  Progress progress;

 private:
  Communicator communicator_{select::Reason::single_rank};
  std::vector<Peer> peers_;
  std::vector<Queue> queues_;
  std::vector<std::unique_ptr<One>> all_;
};

TEST(Progress, RunsEachQueueInOrder) {
  Operations operations(3, 20);
  EXPECT_TRUE(operations.progress.drive());
  EXPECT_FALSE(operations.progress.drive());  // all wait for their peers
  operations.announce();
  size_t finished = 0;
  while (finished < operations.size()) {
    operations.progress.drive();
    finished += operations.finish();
  }
  operations.check();
}

TEST(Progress, ThreadsShareTheWork) {
  Operations operations(4, 30);
  std::atomic<size_t> finished{0};
  std::thread peer([&] { operations.announce(); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (uint32_t round = 0; finished.load() < operations.size(); ++round) {
        if (operations.progress.drive()) round = 0;
        finished += operations.finish();
        operations.progress.rest(round);
      }
    });
  peer.join();
  for (auto& thread : threads) thread.join();
  operations.check();
}

// An operation that waits for what gives no signal.
struct Asking final : Operation {
  Asking(Progress& progress, Communicator& c, Queue& q) : Operation(progress), communicator(c), queue(q) {}
  static void body(void* self) {
    auto& asking = *static_cast<Asking*>(self);
    asking.take_turn(asking.communicator, asking.queue);
    const auto done = [](void* one) {
      ++static_cast<Asking*>(one)->asked;
      return static_cast<Asking*>(one)->done.load();
    };
    asking.until_done(done, self);
    asking.end_turn();
  }
  Communicator& communicator;
  Queue& queue;
  std::atomic<bool> done{false};
  std::atomic<int> asked{0};
};

// Who drives it hears that it got no further, and so may rest.
TEST(Progress, AsksForWhatGivesNoSignal) {
  Progress progress;
  Communicator communicator{select::Reason::single_rank};
  Queue queue;
  Asking one(progress, communicator, queue), next(progress, communicator, queue);
  for (Asking* asking : {&one, &next}) {
    asking->start(Asking::body, asking);
    progress.enqueue(*asking);
  }
  EXPECT_TRUE(progress.drive()) << "it came to its question";
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(progress.drive());
  EXPECT_EQ(one.asked.load(), 5);
  EXPECT_EQ(next.asked.load(), 0);
  one.done = true;
  EXPECT_TRUE(progress.drive());
  EXPECT_FALSE(progress.drive());
  Helper helper;
  helper.configure(&progress, true);
  helper.wake();
  next.done = true;
  while (progress.queued().load() != 0) std::this_thread::yield();
  helper.stop();
  for (Asking* asking : {&one, &next}) {
    EXPECT_EQ(progress.take_executed(), asking);
    asking->resume();
    communicator.let_go();
  }
}

void helped(bool eager) {
  Operations operations(2, 10);
  Helper helper;
  helper.configure(&operations.progress, eager);
  helper.wake();
  operations.announce();
  while (operations.progress.queued().load() != 0) std::this_thread::yield();  // nobody else drives
  EXPECT_EQ(operations.finish(), operations.size());
  operations.check();
  helper.stop();
}

TEST(Helper, GoesOnWithoutCalls) {
  helped(false);
}

TEST(Helper, WorksAllTheTime) {
  helped(true);
}

TEST(Helper, CanBeStoppedWhileOperationsWait) {
  Operations operations(1, 1);
  Helper helper;
  helper.configure(&operations.progress, true);
  helper.wake();
  helper.stop();
  helper.wake();  // and again
  operations.announce();
  while (operations.progress.queued().load() != 0) std::this_thread::yield();
  EXPECT_EQ(operations.finish(), 1u);
  helper.stop();
}

// Where yields are known to cost turns of others it sleeps from the first round on, and else never in that one; and never where
// others may wait for what the thread does.
TEST(Progress, SleepsWhereOthersKeepTheCpus) {
  for (const auto& [known, briefly] : {std::pair(false, false), {true, false}, {true, true}}) {
    const bool may_sleep = known && !briefly;
    Operations operations(1, 1);
    collective::Contention contention;
    for (int i = 0; i < 2; ++i) contention.note(true, now_ns() + 3'600'000'000'000);
    Sharing sharing;
    sharing.crowded = true;
    collective::Work work;
    const collective::Crowd crowd{&contention, &work, {}};
    if (known) sharing.crowd = &crowd;
    operations.progress.configure(sharing, nullptr);
    EXPECT_EQ(operations.progress.is_contended(), known);
    operations.progress.drive();
    std::atomic<bool> stops{false};
    bool slept = false;
    std::thread rank([&] {
      while (!stops.load()) briefly ? operations.progress.rest_briefly() : operations.progress.rest(0);
    });
    for (int i = 0; i < (may_sleep ? 200'000 : 200) && !slept; ++i) {
      slept = operations.anybody_sleeps();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    stops.store(true);
    rank.join();
    EXPECT_EQ(slept, may_sleep);
    operations.announce();
    operations.progress.drive();
    EXPECT_EQ(operations.finish(), 1u);
    operations.check();
  }
}

// For one who may wait, until the queue is empty.
TEST(Progress, Drains) {
  Operations operations(1, 5);
  Queue empty;
  operations.progress.drain(empty);
  std::thread peer([&] { operations.announce(); });
  while (operations.progress.queued().load() != 0) operations.progress.drive();
  peer.join();
  EXPECT_EQ(operations.finish(), 5u);
  operations.check();
}

}  // namespace
}  // namespace stretto::engine
