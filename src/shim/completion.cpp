// Calls that complete requests, while nonblocking collectives are outstanding.
#include <string.h>

#include "shim/context.hpp"
#include "shim/nonblocking.hpp"
#include "shim/wrap.hpp"

namespace stretto::shim {
namespace {

constexpr uint32_t most_words = 8;

// What the waiting functions are to the testing ones.
struct Testing {
  uint32_t test;
  int flag;  // which word of the testing call says that it is done; -1: a count other than 0, word `out_count`
  int out_count;
};

Testing testing(uint32_t index) {
  switch (index) {
    case number::Wait:
      return {number::Test, 1, -1};
    case number::Waitall:
      return {number::Testall, 2, -1};
    case number::Waitany:
      return {number::Testany, 3, -1};
    default:
      return {number::Testsome, -1, 2};
  }
}

// Calls until it is done or nothing is outstanding any more, when MPI may wait. Returns whether it is done.
bool test_until_done(const Completion& c, int* code) {
  const Testing t = testing(c.index);
  int flag = 0;
  Word words[most_words];
  const uint32_t at = t.flag < 0 ? c.count : uint32_t(t.flag), added = t.flag < 0 ? 0 : 1;
  memcpy(words, c.words, at * sizeof(Word));
  words[at] = reinterpret_cast<Word>(&flag);
  memcpy(words + at + added, c.words + at, (c.count - at) * sizeof(Word));
  for (uint32_t round = 0; anything_outstanding(); ++round) {
    if (advance()) round = 0;
    *code = c.call(c.function(t.test), words, c.count + added);
    if (t.flag < 0) flag = *reinterpret_cast<const int*>(words[t.out_count]) != 0;
    if (*code != MPI_SUCCESS || flag) return true;
    context().progress.rest(round);
  }
  return false;
}

int call_in_c(AnyFunction function, Word* words, uint32_t count) {
  return int(forward_words(function, words, count));
}

}  // namespace

Word forward_words(AnyFunction f, const Word* w, uint32_t count) {
  switch (count) {
    case 2:
      return forward(f, w[0], w[1]);
    case 3:
      return forward(f, w[0], w[1], w[2]);
    case 4:
      return forward(f, w[0], w[1], w[2], w[3]);
    case 5:
      return forward(f, w[0], w[1], w[2], w[3], w[4]);
    default:
      return forward(f, w[0], w[1], w[2], w[3], w[4], w[5]);
  }
}

int complete_in_c(uint32_t index, Word* words, uint32_t count) {
  return complete({index, words, count, function_address, call_in_c, true});
}

int complete(const Completion& c) {
  int code = MPI_SUCCESS;
  advance();
  const bool done = waits_for_requests(c.index) && test_until_done(c, &code);
  if (!done) code = c.call(c.function(c.index), c.words, c.count);
  return code == MPI_SUCCESS ? error_to_tell(c) : code;
}

}  // namespace stretto::shim
