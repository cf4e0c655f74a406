#include "engine/progress.hpp"

#include <new>

#include "base/clock.hpp"
#include "platform/futex.hpp"

namespace stretto::engine {
namespace {

constexpr uint32_t spins = 2000;
constexpr uint32_t yields = 10'000, crowded_yields = 5000;  // of half a microsecond and more
constexpr uint32_t helper_yields = 400, brief_crowded_yields = 50;
constexpr uint64_t nap_ns = 50'000;
constexpr uint64_t eager_nap_ns = 100'000;  // calls reckon with it (helper.cpp)

using Lock = std::unique_lock<std::mutex>;

}  // namespace

void Progress::append(Queue& queue) {
  queue.next = nullptr;
  (last_ ? last_->next : first_) = &queue;
  last_ = &queue;
  ++waiting_;
}

Queue* Progress::take() {
  Queue* queue = first_;
  first_ = queue->next;
  if (first_ == nullptr) last_ = nullptr;
  --waiting_;
  return queue;
}

void Progress::enqueue(Operation& operation) {
  const Lock lock(mutex_);
  Queue& queue = *operation.queue_;
  operation.next_ = nullptr;
  (queue.last ? queue.last->next_ : queue.first) = &operation;
  const bool idle = queue.last == nullptr && !queue.busy;
  queue.last = &operation;
  queue.length.fetch_add(1, std::memory_order_relaxed);
  queued_.fetch_add(1, std::memory_order_relaxed);
  if (idle) append(queue);
}

bool Progress::drive() {
  if (queued_.load(std::memory_order_relaxed) == 0) return false;
  const uint64_t now = now_ns();
  bool moved = false;
  Lock lock(mutex_);
  for (uint32_t left = waiting_; left > 0 && first_; --left) {
    Queue* queue = take();
    if (!queue->first->ready(now)) {
      append(*queue);
      continue;
    }
    queue->busy = true;
    lock.unlock();
    moved = serve(*queue) || moved;
    lock.lock();
  }
  return moved;
}

// Whether it got any operation further.
bool Progress::serve(Queue& queue) {
  bool moved = false;
  Operation* operation;
  do {
    operation = queue.first;
    if (!operation->asks_in_vain()) {
      operation->resume();
      moved = true;
    }
  } while (after(queue, *operation));
  return moved;
}

// True: the next operation of this queue has its turn. False: the queue is not this thread's any more.
bool Progress::after(Queue& queue, Operation& operation) {
  const Lock lock(mutex_);
  if (operation.stage() == Operation::Stage::queued) {
    queue.busy = false;
    append(queue);
    return false;
  }
  queue.first = operation.next_;
  if (queue.first == nullptr) {
    queue.last = nullptr;
    queue.busy = false;
  }
  const bool more = queue.first != nullptr;
  operation.next_ = nullptr;
  (last_executed_ ? last_executed_->next_ : executed_) = &operation;
  last_executed_ = &operation;
  executed_count_.fetch_add(1, std::memory_order_relaxed);
  // Last: who sees nothing queued finds what was executed.
  queue.length.fetch_sub(1, std::memory_order_release);
  queued_.fetch_sub(1, std::memory_order_release);
  return more;
}

Operation* Progress::take_executed() {
  if (executed_count_.load(std::memory_order_acquire) == 0) return nullptr;
  const Lock lock(mutex_);
  Operation* operation = executed_;
  if (operation == nullptr) return nullptr;
  executed_ = operation->next_;
  if (executed_ == nullptr) last_executed_ = nullptr;
  executed_count_.fetch_sub(1, std::memory_order_relaxed);
  return operation;
}

void Progress::drain(Queue& queue) {
  for (uint32_t round = 0; queue.length.load(std::memory_order_acquire) != 0; ++round) {
    if (drive()) {
      round = 0;
      continue;
    }
    if (host_ && (round % 64 == 63 || is_contended())) host_(nullptr);
    rest(round);
  }
}

void Progress::rest(uint32_t round, Who who) {
  const bool crowded = sharing_.crowded;
  if (!crowded && round < spins) return cpu_relax();
  const bool briefly = who != Who::call || (crowded && !sharing_.yields_reach);
  const uint32_t all_yields = crowded ? (briefly ? brief_crowded_yields : crowded_yields) : (briefly ? helper_yields : yields);
  if (round - (crowded ? 0 : spins) < all_yields && yield(round == 0, who)) return;
  if (nap_on_only_signal(who == Who::eager_helper ? eager_nap_ns : collective::Waiter::nap_ns)) return;
  const std::atomic<uint32_t> never{0};
  platform::futex_wait(&never, 0, nap_ns);
}

// False: it is not worth it.
bool Progress::yield(bool first, Who who) {
  const collective::Crowd* const crowd = sharing_.crowd;
  if (crowd == nullptr) return platform::yield(), true;
  const uint64_t began = now_ns();
  if (crowd->contention->is_known(began)) return false;
  if (who != Who::call) return platform::yield(), true;  // this thread's yields tell nothing of what the rank does
  collective::Offers offers(crowd, began);
  platform::yield();
  offers.add();
  if (first || offers.took_turn()) offers.end();
  return true;
}

// Where only one operation waits, its signal wakes the sleeper, who has the queue meanwhile: so the communicator stays.
bool Progress::nap_on_only_signal(uint64_t longest_ns) {
  Lock lock(mutex_);
  if (waiting_ != 1 || first_->first->wait_ == nullptr) return false;
  Queue* queue = take();
  queue->busy = true;
  const collective::Wait& wait = *queue->first->wait_;
  lock.unlock();
  collective::Waiter::nap(wait.signal, wait.target, longest_ns);
  lock.lock();
  queue->busy = false;
  append(*queue);
  return true;
}

// The lock may have been another thread's, which the child does not have.
void Progress::forget() {
  new (&mutex_) std::mutex;
  first_ = last_ = nullptr;
  executed_ = last_executed_ = nullptr;
  waiting_ = 0;
  executed_count_.store(0);
  queued_.store(0);
}

}  // namespace stretto::engine
