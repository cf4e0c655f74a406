// What the generated wrappers consist of: count, ask the hook where there is one, forward.
#pragma once
#include <type_traits>

#include "base/clock.hpp"
#include "shim/hooks.hpp"
#include "shim/mpi.hpp"
#include "shim/process.hpp"
#include "trace/recorder.hpp"
#include "trace/stopwatch.hpp"

#define STRETTO_WRAPPER __attribute__((visibility("default")))

namespace stretto::shim {

template <class T>
inline T as(Word word) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);
  } else {
    return static_cast<T>(word);
  }
}

template <class... Words>
inline Word forward(AnyFunction function, Words... words) {
  return reinterpret_cast<Word (*)(Words...)>(function)(words...);
}

// True while a Fortran wrapper is at work in this thread: the C function it may end in is neither counted nor taken again.
extern constinit thread_local bool in_fortran;

template <uint32_t index, class... Words>
inline Word counted(Words... words) {
  if (__builtin_expect(in_fortran, 0)) return forward(function_address(index), words...);
  const uint64_t begin = ticks();
  const Word code = forward(function_address(index), words...);
  trace::count_call(index, ticks() - begin, 0);
  return code;
}

// Asks the hook; where it declines, `plain` makes the call. Returns the code.
template <Kind kind, class Hook, class Plain>
inline Word ask_or_forward(uint32_t index, Hook hook, Plain plain) {
  trace::Timing timing{uint32_t(kind)};
  const bool asked = attached();
  Call call;
  const bool done = asked && hook(call);
  if (!done) trace::takes_long();
  const Word code = done ? Word(call.code) : plain();
  const uint64_t spent = timing.stop();
  trace::count_call(index, spent, call.bytes);
  if (done)
    trace::count_accelerated(uint32_t(kind), call.algorithm, spent, call.bytes);
  else if (asked)
    trace::count_declined(uint32_t(kind), call.reason, spent, call.bytes);
  return code;
}

template <uint32_t index, Kind kind, class Hook, class... Words>
inline Word taken(Hook hook, Words... words) {
  if (__builtin_expect(in_fortran, 0)) return forward(function_address(index), words...);
  return ask_or_forward<kind>(index, hook, [&] { return forward(function_address(index), words...); });
}

}  // namespace stretto::shim
