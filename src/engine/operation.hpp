// A nonblocking collective under way.
//
// The whole call, from its arguments to its last store, is one function on a fiber, the same one that does the blocking call.
// Where that function enters the engine it queues up behind the earlier operations of its communicator; where the algorithm
// would wait it suspends; and what follows after the algorithm, which may call MPI, is left to a thread that may do so:
//
//   starting   in the call that starts it, on that thread
//   queued     waits for its turn; then for peers. Any thread may resume it, one at a time: the helper thread too
//   executed   the algorithm is done: a thread that may call MPI resumes it a last time
//   ended      the function has returned
#pragma once
#include <atomic>

#include "collective/waiter.hpp"
#include "platform/fiber.hpp"

namespace stretto::engine {

class Communicator;
class Operation;
class Progress;
struct Queue;

__attribute__((tls_model("initial-exec"))) extern constinit thread_local Operation* operation_in_this_thread;

class Operation : public collective::Suspension {
 public:
  enum class Stage : uint8_t { rehearsing, starting, queued, executed, ended };

  explicit Operation(Progress& progress) : progress_(&progress) {}

  // The operation at work in this thread, if any. Not inline, as the thread may have changed since the caller last asked.
  static Operation* current();
  // The same, for a function that asks once.
  static Operation* at_entry() { return operation_in_this_thread; }

  Stage stage() const { return stage_; }
  bool has_fiber() const { return has_fiber_; }

  // Runs body(argument) until it queues up or ends. Without memory for a stack it runs to its end right here.
  void start(void (*body)(void*), void* argument);
  void resume();

  // Runs body(argument) as far as the choice of an algorithm, which may wait for the other ranks: `algorithm` says what start()
  // will run, on all ranks alike; -1: nothing. The body is told that MPI must do it.
  void rehearse(void (*body)(void*), void* argument);
  bool rehearses() const { return stage_ == Stage::rehearsing; }

  // For the engine, on the operation:
  // Returns when it is this operation's turn in the queue.
  void take_turn(Communicator& communicator, Queue& queue);
  // Its turn is over. Returns in a thread that may call MPI.
  void end_turn();
  void suspend(const collective::Wait& wait) override;
  void until_done(bool (*done)(void*), void* context) override;

  // Whether resuming it may get it further: its wait is over, or it is time to look whether its peers live.
  bool ready(uint64_t now) const;
  // What it waits for by until_done() is not done. Asks, which may call MPI and the program's functions: not on a fiber's stack.
  bool asks_in_vain() { return done_ != nullptr && !done_(done_context_); }

  Communicator* communicator() const { return communicator_; }  // null: it has not queued up

  Communicator* own = nullptr;  // of a persistent collective: what it runs on instead of its communicator's

  size_t bytes = 0;    // that rules know it by
  int algorithm = -1;  // chosen in the starting call
  int unmapped = -1;   // Selection's

 private:
  friend class Progress;
  static void run(void* self);

  Progress* progress_;
  platform::Fiber fiber_;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  Stage stage_ = Stage::ended;
  bool has_fiber_ = false;
  Communicator* communicator_ = nullptr;
  Queue* queue_ = nullptr;
  Operation* next_ = nullptr;
  const collective::Wait* wait_ = nullptr;  // null: nothing to wait for
  uint64_t look_around_ = 0;                // at this time of the clock
  bool (*done_)(void*) = nullptr;           // to be asked before it is resumed
  void* done_context_ = nullptr;
};

// The operations of one communicator, in the order of their calls, which is the same on all its ranks.
struct Queue {
  Operation *first = nullptr, *last = nullptr;
  bool busy = false;      // a thread is at its first operation
  Queue* next = nullptr;  // in the list of queues with operations
  std::atomic<uint32_t> length{0};
};

}  // namespace stretto::engine
