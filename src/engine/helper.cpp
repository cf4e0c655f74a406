#include "engine/helper.hpp"

#include <signal.h>

#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "platform/futex.hpp"

namespace stretto::engine {
namespace {

constexpr uint64_t patience_ns = 1'000'000;  // how long calls may leave operations alone
constexpr uint64_t coreless_ns = 200'000;    // more than it rests between two looks
constexpr uint64_t longest_sleep_ns = 1'000'000'000;
constexpr size_t stack_bytes = 8 << 20;  // address space; inside MPI's calls functions of the program may run on it

}  // namespace

// Signals are the program's: its threads take them.
bool Helper::spawn() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool made = pthread_create(&thread_, &attributes, run, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (made) pthread_setname_np(thread_, "stretto");
  return made;
}

void Helper::wake() {
  if (state_.load(std::memory_order_acquire) == State::none) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_.load() == State::none) {
      stopping_.store(false);
      const bool made = spawn();
      seen_at_.store(now_ns(), std::memory_order_relaxed);
      state_.store(made ? State::running : State::refused, std::memory_order_release);
      if (state_.load() == State::refused)
        log_once(Level::warning, "no thread can be made: nonblocking collectives progress inside MPI's calls only");
      return;
    }
  }
  if (asleep_.load(std::memory_order_seq_cst) == 0) return;
  seen_at_.store(now_ns(), std::memory_order_relaxed);
  asleep_.store(0, std::memory_order_seq_cst);
  platform::futex_wake_all(&asleep_);
}

bool Helper::works() {
  if (!eager_ || state_.load(std::memory_order_acquire) != State::running || asleep_.load(std::memory_order_relaxed) != 0)
    return false;
  const uint64_t now = now_ns();
  const uint32_t rounds = rounds_.load(std::memory_order_relaxed);
  if (seen_rounds_.exchange(rounds, std::memory_order_relaxed) != rounds)
    return seen_at_.store(now, std::memory_order_relaxed), true;
  return now - seen_at_.load(std::memory_order_relaxed) < coreless_ns;
}

void Helper::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_.load() != State::running) return;
  stopping_.store(true);
  asleep_.store(0);
  platform::futex_wake_all(&asleep_);
  pthread_join(thread_, nullptr);
  state_.store(State::none);
}

void Helper::forget() {
  new (&mutex_) std::mutex;
  state_.store(State::none);
  asleep_.store(0);
}

void* Helper::run(void* self) {
  static_cast<Helper*>(self)->watch();
  return nullptr;
}

// It says that it sleeps before it looks a last time for operations; who enqueues one looks for sleepers afterwards.
void Helper::watch() {
  while (!stopping_.load()) {
    const uint32_t calls = calls_.load(std::memory_order_relaxed);
    if (progress_->queued().load(std::memory_order_seq_cst) == 0) {
      asleep_.store(1, std::memory_order_seq_cst);
      if (progress_->queued().load(std::memory_order_seq_cst) == 0 && !stopping_.load())
        platform::futex_wait(&asleep_, 1, longest_sleep_ns);
      asleep_.store(0, std::memory_order_seq_cst);
    }
    if (!eager_) {
      const std::atomic<uint32_t> never{0};
      platform::futex_wait(&never, 0, patience_ns);
      if (calls_.load(std::memory_order_relaxed) != calls) continue;
    }
    work(calls);
  }
}

// Until there is nothing to do, or a call takes care of it again.
void Helper::work(uint32_t calls) {
  for (uint32_t round = 0; progress_->queued().load(std::memory_order_relaxed) != 0 && !stopping_.load(); ++round) {
    rounds_.fetch_add(1, std::memory_order_relaxed);
    if (progress_->drive()) round = 0;
    progress_->rest(round, eager_ ? Progress::Who::eager_helper : Progress::Who::helper);
    if (!eager_ && calls_.load(std::memory_order_relaxed) != calls) return;
  }
}

}  // namespace stretto::engine
