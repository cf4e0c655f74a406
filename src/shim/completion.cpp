// Calls that complete requests, while nonblocking collectives are outstanding.
#include <string.h>

#include <algorithm>
#include <utility>

#include "shim/context.hpp"
#include "shim/nonblocking.hpp"
#include "shim/persistent.hpp"
#include "shim/profile/words.hpp"
#include "shim/wrap.hpp"

namespace stretto::shim {
namespace {

constexpr uint32_t most_of_c = 8;

bool has_windows() {
  return open_windows.load(std::memory_order_relaxed) > 0;
}

// Between two looks. While there are windows, others may wait for what MPI does in the next one.
void rest(uint32_t round) {
  engine::Progress& progress = context().progress;
  has_windows() ? progress.rest_briefly() : progress.rest(round);
}

// Whether a call waits for a request that was started not long ago.
bool awaits_recent(const Completion& c) {
  if (c.index == number::Wait) return recent_requests.has(c.request(c.words[0], 0));
  for (int i = 0; i < c.number(0); ++i)
    if (recent_requests.has(c.request(c.words[1], i))) return true;
  return false;
}

// The look at Stretto's operations before one at MPI's requests, for which MPI may yield: where that costs a turn of others, and
// the call waits for such an operation, there is a rest before. Returns whether it rested.
bool look(uint32_t* round, const Completion& c) {
  if (advance(true)) return *round = 0, false;
  if (!context().progress.is_contended() || has_windows() || !awaits_recent(c)) return false;
  rest(*round);
  advance(true);
  return true;
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
  Word words[most_of_c];
  const uint32_t at = t.flag < 0 ? c.count : uint32_t(t.flag), added = t.flag < 0 ? 0 : 1;
  memcpy(words, c.words, at * sizeof(Word));
  words[at] = reinterpret_cast<Word>(&flag);
  memcpy(words + at + added, c.words + at, (c.count - at) * sizeof(Word));
  for (uint32_t round = 0; anything_outstanding(); ++round) {
    const bool rested = look(&round, c);
    *code = c.call(c.function(t.test), words, c.count + added);
    if (t.flag < 0) flag = *reinterpret_cast<const int*>(words[t.out_count]) != 0;
    if (*code != MPI_SUCCESS || flag) return true;
    if (!rested) rest(round);
  }
  return false;
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

#if defined(STRETTO_MPI_OMPI)
constexpr bool waits_one_by_one(uint32_t) {
  return false;
}
int wait_one_by_one(const Completion&) {
  return MPI_SUCCESS;
}
#else
// MPI_Waitall: of MPICH 5.0 MPI_Testall reports an error for persistent collectives of its own, and MPI_Request_get_status makes
// persistent receives inactive, whose status and error are lost. So each request is tested, until MPI may wait for the rest.
constexpr bool waits_one_by_one(uint32_t index) {
  return index == number::Waitall;
}

class OneByOne {
 public:
  explicit OneByOne(const Completion& c)
      : c_(c), count_(c.number(0)), requests_(reinterpret_cast<MPI_Request*>(c.words[1])), statuses_(statuses_of_all(c)) {}

  int wait() {
    for (uint32_t round = 0; takes_statuses_ && anything_outstanding() && done_ < count_; ++round) {
      const bool rested = look(&round, c_);
      while (done_ < count_ && test_next()) {
      }
      if (done_ < count_ && !rested) rest(round);
    }
    if (done_ == 0) return wait_for_rest();
    if (done_ < count_) wait_for_rest();
    return failed_ ? int(MPI_ERR_IN_STATUS) : int(MPI_SUCCESS);
  }

 private:
  static MPI_Status* statuses_of_all(const Completion& c) {
    const bool none = !c.in_c && profile::fortran_ignores_status(reinterpret_cast<const void*>(c.words[2]));
    return none ? MPI_STATUSES_IGNORE : reinterpret_cast<MPI_Status*>(c.words[2]);
  }
  Word request() const { return reinterpret_cast<Word>(requests_ + done_); }
  Word status() const { return reinterpret_cast<Word>(wants_statuses_ ? statuses_ + done_ : statuses_); }

  bool test_next() {
    int flag = 0;
    Word words[] = {request(), reinterpret_cast<Word>(&flag), status()};
    const int code = call_and_tell(number::Test, words);
    if (code == MPI_SUCCESS && !flag) return false;
    note(1, code);
    ++done_;
    return true;
  }
  int wait_for_rest() {
    Word words[] = {Word(count_ - done_), request(), status()};
    const int code = call_and_tell(number::Waitall, words);
    if (done_ > 0 && code != MPI_ERR_IN_STATUS) note(count_ - done_, code);
    if (code == MPI_ERR_IN_STATUS && !std::exchange(failed_, true)) set_errors(0, done_, MPI_SUCCESS);
    return code;
  }
  static int call_and_tell(uint32_t index, Word (&words)[3]) {
    const Completion c{index, words, 3, function_address, call_in_c, request_in_c, true};
    return told(c, c.call(c.function(index), words, 3));
  }

  // `many` requests are done with `code`. Statuses have an error where any request failed, and only there.
  void note(int many, int code) {
    if (code != MPI_SUCCESS && !std::exchange(failed_, true)) set_errors(0, done_, MPI_SUCCESS);
    if (failed_) set_errors(done_, many, code);
  }
  void set_errors(int first, int many, int code) {
    for (int i = first; wants_statuses_ && i < first + many; ++i) statuses_[i].MPI_ERROR = code;
  }

  const Completion& c_;
  const int count_;
  MPI_Request* const requests_;
  MPI_Status* const statuses_;
  const bool wants_statuses_ = statuses_ != MPI_STATUSES_IGNORE && statuses_ != nullptr;
  const bool takes_statuses_ = wants_statuses_ || statuses_ == MPI_STATUSES_IGNORE;  // else MPI says what is wrong
  int done_ = 0;
  bool failed_ = false;
};

int wait_one_by_one(const Completion& c) {
  return OneByOne(c).wait();
}
#endif

// A null pointer to requests or for what the call finds: MPI says what is wrong, or that there is nothing to do. (Statuses, which
// are last, may be null.)
bool lacks_an_argument(const Completion& c) {
  const uint32_t first = c.index == number::Wait || c.index == number::Test ? 0 : 1;
  return c.in_c && std::count(c.words + first, c.words + c.count - 1, Word(0)) > 0;
}

// More words than the function takes do no harm.
template <size_t... positions>
Word forward_many(AnyFunction f, const Word* words, std::index_sequence<positions...>) {
  return forward(f, words[positions]...);
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
    case 6:
      return forward(f, w[0], w[1], w[2], w[3], w[4], w[5]);
    default:
      return forward_many(f, w, std::make_index_sequence<most_words>());
  }
}

int complete_in_c(uint32_t index, Word* words, uint32_t count) {
  return complete({index, words, count, function_address, call_in_c, request_in_c, true});
}

int complete(const Completion& c) {
  int code = MPI_SUCCESS;
  advance(waits_for_requests(c.index));
  if (lacks_an_argument(c)) return c.call(c.function(c.index), c.words, c.count);
  if (waits_one_by_one(c.index)) return wait_one_by_one(c);
  const bool done = waits_for_requests(c.index) && test_until_done(c, &code);
  if (!done) code = c.call(c.function(c.index), c.words, c.count);
  return told(c, code);
}

}  // namespace stretto::shim
