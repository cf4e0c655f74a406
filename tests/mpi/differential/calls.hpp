// What the comparisons of all collectives share: how sizes and addresses are drawn, in which order the two calls go.
#pragma once
#include <unistd.h>

#include <string>

#include "compare.hpp"

namespace differential {

// Each rank comes when it likes, where asked for: half of them late.
inline void come_late(Context& context) {
  const long late = context.limits.late_us;
  if (late > 0 && context.own.one_in(2)) usleep(useconds_t(context.own.below(uint64_t(late))));
}

// Which of the two goes first changes from call to call, so that neither always finds warm buffers or aligned arrivals.
template <class Mine, class Oracle>
void both(Context& context, Mine mine, Oracle oracle) {
  bool oracle_first = context.agreed.one_in(2);
  if (context.own.one_in(6)) usleep(useconds_t(context.own.below(400)));
  if (oracle_first) oracle();
  come_late(context);
  mine();
  if (!oracle_first) oracle();
}

// Mostly few elements, zero now and then, some up to 64 KiB, seldom up to the largest.
size_t draw_elements(Random& random, const BaseType& base, size_t largest);

// MPI libraries load 16-byte elements with aligned instructions, as they may: those keep their alignment. All others are
// also put where no element is aligned.
size_t draw_misalignment(Random& random, const Layout& layout);

// The call in words.
std::string describe(const char* call, const Layout& layout, size_t count, const Operation* op, int root, bool in_place);

// Empty, or what was written beside the elements of a buffer.
std::string wrong_outside(const Buffer& buffer, const char* whose);

}  // namespace differential
