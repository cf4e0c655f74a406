// Calls that complete requests, while nonblocking collectives are outstanding.
#include <string.h>

#include <algorithm>

#include "shim/context.hpp"
#include "shim/nonblocking.hpp"
#include "shim/persistent.hpp"
#include "shim/wrap.hpp"

namespace stretto::shim {
namespace {

constexpr uint32_t most_words = 8;

// Between two looks. While there are windows, others may wait for what MPI does in the next one.
void rest(uint32_t round) {
  context().progress.rest(open_windows.load(std::memory_order_relaxed) > 0 ? 0 : round);
}

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
    if (advance(true)) round = 0;
    *code = c.call(c.function(t.test), words, c.count + added);
    if (t.flag < 0) flag = *reinterpret_cast<const int*>(words[t.out_count]) != 0;
    if (*code != MPI_SUCCESS || flag) return true;
    rest(round);
  }
  return false;
}

// MPI_Testall of MPICH 5.0 reports an error for persistent collectives of its own, where its MPI_Waitall does not: so requests
// are looked at one by one, until MPI_Waitall need not wait.
void look_until_all_are_done(const Completion& c) {
  const int count = c.number(0);
  int done = 0;
  for (uint32_t round = 0; anything_outstanding() && done < count; ++round) {
    if (advance(true)) round = 0;
    int flag = 1;
    while (flag && done < count) {
      const int code = mpi().Request_get_status(c.request(c.words[1], done), &flag, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) flag = 1;  // MPI_Waitall tells
      done += flag;
    }
    if (done < count) rest(round);
  }
  advance();  // forgets what the looks have told
}

constexpr bool looks_one_by_one(const Completion& c) {
#if defined(STRETTO_MPI_OMPI)
  return (void)c, false;
#else
  return c.index == number::Waitall;
#endif
}

// Which of its requests a call has completed: number k of them, k < many(). Those are counted from 0.
class Completed {
 public:
  explicit Completed(const Completion& c) : c_(c) {}

  int many() const {
    if (c_.index == number::Test && !word(1)) return 0;
    if (c_.index == number::Testall && !word(2)) return 0;
    if (c_.index == number::Testany && !word(3)) return 0;
    if (all()) return c_.number(0);
    return c_.index == number::Waitsome || c_.index == number::Testsome ? word(2) : 1;
  }
  MPI_Request request(int k) const {
    if (c_.index == number::Wait || c_.index == number::Test) return c_.request(c_.words[0], 0);
    const int i = all() ? k : reinterpret_cast<const int*>(c_.words[any() ? 2 : 3])[k] - (c_.in_c ? 0 : 1);
    return i >= 0 && i < c_.number(0) ? c_.request(c_.words[1], i) : MPI_Request{};
  }

 private:
  bool all() const { return c_.index == number::Waitall || c_.index == number::Testall; }
  bool any() const { return c_.index == number::Waitany || c_.index == number::Testany; }
  int word(int i) const { return *reinterpret_cast<const int*>(c_.words[i]); }  // that the call has set
  const Completion& c_;
};

// Persistent requests of failed operations, of which MPI knows no more than that they are complete.
int persistent_error(const Completion& c, int code) {
  const Completed completed(c);
  int told = code, count;
  MPI_Status* statuses = statuses_of(c, &count);
  for (int k = 0; k < completed.many(); ++k) {
    const int error = tell_error(completed.request(k));
    if (error == MPI_SUCCESS) continue;
    for (int i = 0; statuses != nullptr && told == MPI_SUCCESS && i < count; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (statuses != nullptr) statuses[k].MPI_ERROR = error;
    if (told == MPI_SUCCESS) told = completes_several(c) ? int(MPI_ERR_IN_STATUS) : error;
  }
  return told;
}

int told(const Completion& c, int code) {
  code = error_to_tell(c, code);
  return any_persistent() ? persistent_error(c, code) : code;
}

MPI_Request request_in_c(Word array, int i) {
  return reinterpret_cast<const MPI_Request*>(array)[i];
}

int call_in_c(AnyFunction function, Word* words, uint32_t count) {
  return int(forward_words(function, words, count));
}

// A null pointer to requests or for what the call finds: MPI says what is wrong, or that there is nothing to do. (Statuses, which
// are last, may be null.)
bool lacks_an_argument(const Completion& c) {
  const uint32_t first = c.index == number::Wait || c.index == number::Test ? 0 : 1;
  return c.in_c && std::count(c.words + first, c.words + c.count - 1, Word(0)) > 0;
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
  return complete({index, words, count, function_address, call_in_c, request_in_c, true});
}

int complete(const Completion& c) {
  int code = MPI_SUCCESS;
  advance(waits_for_requests(c.index));
  if (lacks_an_argument(c)) return c.call(c.function(c.index), c.words, c.count);
  if (looks_one_by_one(c)) {
    look_until_all_are_done(c);
    return told(c, c.call(c.function(c.index), c.words, c.count));
  }
  const bool done = waits_for_requests(c.index) && test_until_done(c, &code);
  if (!done) code = c.call(c.function(c.index), c.words, c.count);
  return told(c, code);
}

}  // namespace stretto::shim
