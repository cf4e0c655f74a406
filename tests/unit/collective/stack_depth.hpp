// How much of its stack a function takes: what is below the caller's frame is painted first, and looked at afterwards.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>

namespace stretto::collective {

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool stack_is_measured = true;
#else
constexpr bool stack_is_measured = false;  // frames of the sanitizers are larger
#endif
constexpr size_t painted_stack = 64 << 10, most_stack = 24 << 10;
constexpr unsigned char stack_paint = 0x5a;

// Calls body() and expects that it does with most_stack.
template <class Body>
[[gnu::noinline]] void run_in_little_stack(const Body& body) {
  if (!stack_is_measured) return body();
  auto* const here = static_cast<unsigned char*>(__builtin_frame_address(0));
  volatile unsigned char* const lowest = here - painted_stack;
  for (volatile unsigned char* at = lowest; at < here - 512; ++at) *at = stack_paint;
  body();
  size_t left = 0;
  while (lowest[left] == stack_paint) ++left;
  EXPECT_LE(painted_stack - left, most_stack) << "bytes of stack";
}

}  // namespace stretto::collective
