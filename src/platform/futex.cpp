#include "platform/futex.hpp"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace stretto::platform {
namespace {

constexpr uint64_t nap_ns = 50'000;

timespec to_timespec(uint64_t ns) {
  return {time_t(ns / 1'000'000'000), long(ns % 1'000'000'000)};
}

// Returns 0 or an errno value. The word may be shared: no FUTEX_PRIVATE_FLAG.
int futex(const std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* timeout) {
  static_assert(sizeof *word == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, word, operation, value, timeout, nullptr, 0) < 0 ? errno : 0;
}

bool returned_as_documented(int error) {
  return error == 0 || error == EAGAIN || error == EINTR || error == ETIMEDOUT;
}

}  // namespace

void futex_wait(const std::atomic<uint32_t>* word, uint32_t expected, uint64_t timeout_ns) {
  timespec timeout = to_timespec(timeout_ns);
  if (returned_as_documented(futex(word, FUTEX_WAIT, expected, &timeout))) return;
  // The system call is denied. Waking is then nobody's business either: look again soon.
  if (word->load(std::memory_order_relaxed) != expected) return;
  nap(std::min(timeout_ns, nap_ns));
}

void futex_wake_all(const std::atomic<uint32_t>* word) {
  futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

void yield() {
  sched_yield();
}

void nap(uint64_t ns) {
  const timespec time = to_timespec(ns);
  nanosleep(&time, nullptr);
}

}  // namespace stretto::platform
