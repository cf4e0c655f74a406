// The thread that goes on with outstanding operations while the program computes, or is inside MPI. It calls MPI for operations
// over nodes alone.
#pragma once
#include <pthread.h>

#include <atomic>

#include "engine/progress.hpp"

namespace stretto::engine {

class Helper {
 public:
  // eager: it works whenever there are operations. Else only when no call has driven them for a millisecond, so that nobody waits
  // for ever for a rank that computes or sits in a blocking call.
  void configure(Progress* progress, bool eager) {
    progress_ = progress;
    eager_ = eager;
  }
  // There are operations; the first time makes the thread.
  void wake();
  // Whether it works on the operations, or is about to, so that a call need not. One that has not run for long may have no core.
  bool works();
  bool is_eager() const { return eager_; }
  // A call looks after the operations.
  void relieve() { calls_.fetch_add(1, std::memory_order_relaxed); }
  // Ends the thread.
  void stop();
  // In the child of a fork(): there is no thread.
  void forget();

 private:
  static void* run(void* self);
  void watch();
  void work(uint32_t calls);
  bool spawn();

  Progress* progress_ = nullptr;
  bool eager_ = false;
  pthread_t thread_{};
  std::mutex mutex_;  // of starting and stopping
  enum class State : uint8_t { none, running, refused };
  std::atomic<State> state_{State::none};
  std::atomic<bool> stopping_{false};
  std::atomic<uint32_t> asleep_{0};  // the word it sleeps on
  std::atomic<uint32_t> calls_{0};
  std::atomic<uint32_t> rounds_{0};       // that it has looked for something to do
  std::atomic<uint32_t> seen_rounds_{0};  // when a call last saw that there were more
  std::atomic<uint64_t> seen_at_{0};
};

}  // namespace stretto::engine
