// Fibers: functions on stacks of their own, which stop in their middle and go on later, maybe on another thread.
//
// A thread that resumes a fiber runs it until it suspends itself or ends. One thread at a time; whoever resumes a fiber must see
// what the former one did (a lock between them). On a fiber the address of a thread-local variable must not be kept over a
// suspension: the thread may be another one afterwards.
#pragma once
#include <cstddef>

namespace stretto::platform {

class Fiber {
 public:
  static constexpr size_t stack_bytes = 512 << 10;  // reserved; what is touched counts

  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Maps the stack, with a page below it that nobody may touch, unless it is there. False: no memory, or a processor for which
  // no switch is written.
  bool reserve();

  // The next resume() begins body(argument). The former body has ended.
  void begin(void (*body)(void*), void* argument);
  void resume();
  bool ended() const { return ended_; }

  // On the fiber: back to whoever resumed it.
  void suspend();

 private:
  static void enter(Fiber* self);
  void enter_fiber();
  void back_from_fiber();

  char* memory_ = nullptr;
  void* own_ = nullptr;     // stack pointer while suspended
  void* caller_ = nullptr;  // of the thread that resumed it
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
  // What the sanitizers want to know.
  void *own_shadow_ = nullptr, *caller_shadow_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_stack_bytes_ = 0;
};

}  // namespace stretto::platform
