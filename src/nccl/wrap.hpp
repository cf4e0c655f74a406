// What the wrappers have in common.
#pragma once
#include "nccl/calls.hpp"
#include "nccl/library.hpp"
#include "nccl/session.hpp"

#define STRETTO_EXPORT extern "C" __attribute__((visibility("default")))

namespace stretto::nccl {

// Whether a wrapper is to do nothing but call NCCL: nothing is profiled, or NCCL calls itself.
inline bool passes_through() {
  return this_thread.inside || !profiled();
}

template <typename... Arguments>
Result run_operation(const Operands& operands, AnyFunction function, Arguments... arguments) {
  auto forward = [&] { return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...); };
  if (passes_through()) return forward();
  Call call;
  const Inside inside;
  begin_operation(call, operands);
  const Result result = forward();
  end_call(call, result);
  return result;
}

template <typename Forward>
Result run_plain(Function function, Forward forward) {
  if (passes_through()) return forward();
  Call call;
  const Inside inside;
  begin_plain(call, function);
  const Result result = forward();
  end_call(call, result);
  return result;
}

// Communicators that NCCL makes when the group ends: they exist now, or were not made.
void complete_creations(Result result);

}  // namespace stretto::nccl
