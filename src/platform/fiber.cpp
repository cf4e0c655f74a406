#include "platform/fiber.hpp"

#include <stdint.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// stretto_switch_stack(&save, load): keeps what a function must preserve on this stack, whose pointer goes to `save`, and goes
// on where the stack `load` was left. The floating-point control word is the thread's, not the fiber's.
// stretto_enter_fiber: where a new stack begins: calls the second kept register with the first.
#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.hidden stretto_switch_stack
.globl stretto_switch_stack
.type stretto_switch_stack, @function
stretto_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size stretto_switch_stack, .-stretto_switch_stack
.hidden stretto_enter_fiber
.globl stretto_enter_fiber
.type stretto_enter_fiber, @function
stretto_enter_fiber:
  movq %r12, %rdi
  jmp *%r13
.size stretto_enter_fiber, .-stretto_enter_fiber
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.hidden stretto_switch_stack
.globl stretto_switch_stack
.type stretto_switch_stack, %function
stretto_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size stretto_switch_stack, .-stretto_switch_stack
.hidden stretto_enter_fiber
.globl stretto_enter_fiber
.type stretto_enter_fiber, %function
stretto_enter_fiber:
  mov x0, x19
  mov x16, x20  // by which a function may be entered under branch protection
  br x16
.size stretto_enter_fiber, .-stretto_enter_fiber
)");
#endif

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" void stretto_switch_stack(void** save, void* load);
extern "C" void stretto_enter_fiber();
#else
static void stretto_switch_stack(void**, void*) {}
#endif

namespace stretto::platform {
namespace {

constexpr size_t guard_bytes = 64 << 10;  // a multiple of every page size

// The words that the first switch to a stack takes from its end `top`: as if the body had called the switch before.
#if defined(__x86_64__)
constexpr bool supported = true;
void* first_frame(char* top, void* argument, void* function) {
  auto** word = reinterpret_cast<void**>(top) - 8;  // r15 r14 r13 r12 rbx rbp, where to go, a return address that is none
  for (int i = 0; i < 8; ++i) word[i] = nullptr;
  word[2] = function;
  word[3] = argument;
  word[6] = reinterpret_cast<void*>(&stretto_enter_fiber);
  return word;
}
#elif defined(__aarch64__)
constexpr bool supported = true;
void* first_frame(char* top, void* argument, void* function) {
  auto** word = reinterpret_cast<void**>(top) - 20;  // x19 to x30, d8 to d15
  for (int i = 0; i < 20; ++i) word[i] = nullptr;
  word[0] = argument;
  word[1] = function;
  word[11] = reinterpret_cast<void*>(&stretto_enter_fiber);
  return word;
}
#else
constexpr bool supported = false;
void* first_frame(char*, void*, void*) {
  return nullptr;
}
#endif

}  // namespace

Fiber::~Fiber() {
  if (memory_) munmap(memory_, stack_bytes);
}

bool Fiber::reserve() {
  if (!supported) return false;
  if (memory_) return true;
  void* mapped =
      mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) return false;
  memory_ = static_cast<char*>(mapped);
  if (mprotect(memory_, guard_bytes, PROT_NONE) == 0) return true;
  munmap(memory_, stack_bytes);
  memory_ = nullptr;
  return false;
}

void Fiber::begin(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  own_ = first_frame(memory_ + stack_bytes, this, reinterpret_cast<void*>(&Fiber::enter));
#if defined(__SANITIZE_THREAD__)
  own_shadow_ = __tsan_create_fiber(0);
#endif
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  void* shadow = nullptr;
  __sanitizer_start_switch_fiber(&shadow, memory_ + guard_bytes, stack_bytes - guard_bytes);
#elif defined(__SANITIZE_THREAD__)
  caller_shadow_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_shadow_, 0);
#endif
  stretto_switch_stack(&caller_, own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#elif defined(__SANITIZE_THREAD__)
  if (ended_) __tsan_destroy_fiber(own_shadow_);
#endif
}

// Leaves the fiber; what follows in suspend() happens at the next resume().
void Fiber::back_from_fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &own_shadow_, caller_stack_, caller_stack_bytes_);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(caller_shadow_, 0);
#endif
  stretto_switch_stack(&own_, caller_);
}

void Fiber::enter_fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_shadow_, &caller_stack_, &caller_stack_bytes_);
#endif
}

void Fiber::suspend() {
  back_from_fiber();
  enter_fiber();
}

void Fiber::enter(Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  self->own_shadow_ = nullptr;
#endif
  self->enter_fiber();
  self->body_(self->argument_);
  self->ended_ = true;
  self->back_from_fiber();
  __builtin_trap();
}

}  // namespace stretto::platform
