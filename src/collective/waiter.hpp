// Waiting as a policy: spin, then yield, then sleep; meanwhile drive MPI's progress and notice the dead.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collective/board.hpp"

namespace stretto::collective {

// a >= b for numbers that wrap.
inline bool reached(uint32_t a, uint32_t b) { return int32_t(a - b) >= 0; }

struct WaitPolicy {
  uint32_t spins = 2000;  // looks at the line before anything else
  uint32_t yields = 400;  // then times the CPU is offered to others; after that the rank sleeps
  static WaitPolicy dedicated() { return {2000, 400}; }
  static WaitPolicy oversubscribed() { return {20, 60}; }
};

// What waiting may call on. Both may be null.
struct WaitHooks {
  void (*progress)(void* context) = nullptr;        // drives the MPI library
  bool (*alive)(void* context, int rank) = nullptr; // whether a rank of the team still lives
  void* context = nullptr;
};

class Waiter {
 public:
  Waiter() = default;
  Waiter(const WaitPolicy& policy, const WaitHooks& hooks) : policy_(policy), hooks_(hooks) {}

  // Returns once signal.value has reached `target`; what its writer stored before is then visible. peer_lost, detail = rank,
  // when its writer, rank `writer`, has died.
  Status until(Signal& signal, uint32_t target, int writer) {
    for (uint32_t i = 0; i < policy_.spins; ++i) {
      if (reached(signal.value.load(std::memory_order_acquire), target)) return Status::good();
      relax();
    }
    return wait_long(signal, target, writer);
  }

 private:
  static void relax() { cpu_relax(); }
  Status wait_long(Signal& signal, uint32_t target, int writer);
  Status sleep(Signal& signal, uint32_t target, int writer);

  WaitPolicy policy_;
  WaitHooks hooks_;
};

// Stores `value` with release order and wakes whoever sleeps on the signal.
void announce(Signal& signal, uint32_t value);

}  // namespace stretto::collective
