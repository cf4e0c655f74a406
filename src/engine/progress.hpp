// Who drives the outstanding operations, and how: any thread that has time, from the queues of all communicators.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.hpp"
#include "engine/operation.hpp"
#include "engine/sharing.hpp"
#include "platform/futex.hpp"

namespace stretto::engine {

class Progress {
 public:
  // host: what drives MPI while a call waits here; may be null.
  void configure(const Sharing& sharing, void (*host)(void*)) {
    sharing_ = sharing;
    host_ = host;
  }

  // An operation that has reached its turn's queue.
  void enqueue(Operation& operation);

  // Gets every operation as far as it goes without waiting. False: none could go on.
  bool drive();

  // The next operation whose algorithm is done, for a thread that may call MPI. Null: none.
  Operation* take_executed();

  // Returns when the queue is empty. In calls of MPI only.
  void drain(Queue& queue);

  // After the `round`-th fruitless drive() in a row: spins, then yields, then sleeps for a fraction of a millisecond. Who has
  // nothing else to do yields for as long as one that waits in a blocking collective; a helper, who works beside others, does
  // not, nor does anybody where yields do not pass a shared CPU on. One to which calls leave their work looks again sooner.
  enum class Who : uint8_t { call, helper, eager_helper };
  void rest(uint32_t round, Who who = Who::call);

  // Where others may wait for what this thread does next: never sleeps.
  void rest_briefly() const { sharing_.crowded ? platform::yield() : cpu_relax(); }

  bool is_contended() const { return sharing_.crowd != nullptr && sharing_.crowd->contention->is_known(now_ns()); }

  // Operations in queues; the word that the helper sleeps on.
  const std::atomic<uint32_t>& queued() const { return queued_; }

  // In the child of a fork(): there is nothing left to drive.
  void forget();

 private:
  bool serve(Queue& queue);
  bool after(Queue& queue, Operation& operation);
  void append(Queue& queue);
  Queue* take();
  bool yield(bool first, Who who);
  bool nap_on_only_signal(uint64_t longest_ns);

  Sharing sharing_;
  void (*host_)(void*) = nullptr;
  std::mutex mutex_;                          // of what follows, and of all queues
  Queue *first_ = nullptr, *last_ = nullptr;  // queues with operations at which no thread is
  uint32_t waiting_ = 0;                      // length of that list
  Operation *executed_ = nullptr, *last_executed_ = nullptr;
  std::atomic<uint32_t> executed_count_{0};
  std::atomic<uint32_t> queued_{0};
};

}  // namespace stretto::engine
