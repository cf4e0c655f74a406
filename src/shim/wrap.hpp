// What the generated wrappers consist of: count, ask the hook where there is one, forward.
#pragma once
#include <type_traits>
#include <utility>

#include "base/clock.hpp"
#include "base/function_ref.hpp"
#include "select/reason.hpp"
#include "shim/between_nodes.hpp"
#include "shim/hooks.hpp"
#include "shim/mpi.hpp"
#include "shim/nonblocking.hpp"
#include "shim/paces.hpp"
#include "shim/persistent.hpp"
#include "shim/process.hpp"
#include "shim/profile/profile.hpp"
#include "shim/tools.hpp"
#include "shim/twins.hpp"
#include "trace/call_clock.hpp"
#include "trace/recorder.hpp"
#include "trace/stopwatch.hpp"

#define STRETTO_WRAPPER __attribute__((visibility("default")))
// own_MPI_X: Stretto's MPI_X, whoever else has one.
#define STRETTO_OWN_NAME(function, words) \
  extern "C" __attribute__((visibility("hidden"), alias(#function))) Word own_##function words;

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

// Of which function a Fortran wrapper is at work in this thread (index + 1): the C function it may end in is neither counted nor
// taken again. What callbacks of the program call meanwhile is.
extern constinit thread_local uint32_t in_fortran;
inline constexpr uint32_t in_some_function = UINT32_MAX;
inline bool comes_from_fortran(uint32_t index) {
  return __builtin_expect(in_fortran != 0, 0) && (in_fortran == index + 1 || in_fortran == in_some_function);
}

template <class... Words>
__attribute__((noinline)) Word forward_from_fortran(uint32_t index, Words... words) {
  const uint32_t former = std::exchange(in_fortran, 0);
  const Word result = forward(function_address(index), words...);
  in_fortran = former;
  return result;
}

template <class... Words, size_t... positions>
inline Word forward_each(AnyFunction function, const Word* words, std::index_sequence<positions...>) {
  return forward(function, Words(words[positions])...);
}

using trace::Clocking;

using Plain = FunctionRef<Word()>;  // the call as the program made it

// Makes a call that may wait, times and counts it.
Word timed(uint32_t index, Clocking how, Plain make);

// The same of a call that never waits, most of which are not timed.
template <class Make>
inline Word timed_at_times(uint32_t index, Make make) {
  if (__builtin_expect(pace_of(index).timed(), 0)) return timed(index, Clocking::never_waits, make);
  trace::count_passed(index, 0);
  return make();
}

// Whether MPI is not the only one to do a call that no hook is asked about.
inline bool more_to_do(uint32_t index) {
  if (index == number::Cancel) return taking();
  return anything_outstanding() || (concerns_persistent(index) && any_persistent()) || (frees_communicator(index) && any_twins());
}

// A call while nonblocking collectives are outstanding, or of a persistent one.
template <class... Words>
__attribute__((noinline)) Word forward_advancing(uint32_t index, Word* words) {
  if (waits_for_requests(index) || tests_requests(index)) return Word(complete_in_c(index, words, sizeof...(Words)));
  advance();
  if (frees_communicator(index) && attached() && words[0]) end_operations_on(*as<const MPI_Comm*>(words[0]));
  if (index == number::Cancel) return Word(cancel_any(as<MPI_Request*>(words[0])));
  if (concerns_persistent(index) && any_persistent()) return Word(forward_persistent(index, words));
  return forward_each<Words...>(function_address(index), words, std::index_sequence_for<Words...>());
}

// How a wrapper without a hook makes its call.
template <class... Words>
struct Forwarding {
  uint32_t index;
  Word operator()(Word* words) const {
    if (more_to_do(index)) return forward_advancing<Words...>(index, words);
    return forward_each<Words...>(function_address(index), words, std::index_sequence_for<Words...>());
  }
};

// The last word of a call that has made a communicator points to it.
template <uint32_t index, class... Words>
inline void made_communicator(Words... words) {
  if (!attached()) return;
  const Word array[] = {words...};
  const auto* comm = as<const MPI_Comm*>(array[sizeof...(words) - 1]);
  if (comm == nullptr || *comm == comm_null()) return;
  if (makes_of_session(index) || (derives_communicator(index) && is_of_session(as<MPI_Comm>(array[0])))) made_of_session(*comm);
  if constexpr (prepares_communicator(index)) prepare_communicator(*comm);
}

using Make = FunctionRef<Word(Word*)>;  // a call of its words
using Ask = FunctionRef<bool(Call&)>;   // a hook

// The same call, told to the profile, which may have MPI write its statuses elsewhere.
Word profiled(uint32_t index, Word* words, Make make);

template <class... Words>
__attribute__((noinline)) Word count_advancing(uint32_t index, Words... words) {
  return timed(index, Clocking::every_call, [&] {
    Word array[] = {words..., 0};
    return forward_advancing<Words...>(index, array);
  });
}

// Asks a second time: a program may expect that what others have done before a Barrier shows at once. A barrier of MPI's would
// have brought that in; MPICH looks at what has come only after it has answered.
inline Word test_window(Word window, Word flag) {
  const Word code = forward(function_address(number::Win_test), window, flag);
  if (int(code) != MPI_SUCCESS || !attached() || *as<int*>(flag) != 0) return code;
  return forward(function_address(number::Win_test), window, flag);
}

// MPI_Pcontrol, whose further words only another tool knows.
template <class... Words>
inline void control(Word level, Words...) {
  profile::control(int(level));
}

template <uint32_t index, class... Words>
inline Word count_and_forward(Words... words) {
  if constexpr (index == number::Pcontrol) control(words...);
  if (profile::watches()) {
    Word array[] = {words..., 0};
    return profiled(index, array, Forwarding<Words...>{index});
  }
  if (more_to_do(index)) return count_advancing(index, words...);
  const auto make = [&] {
    if constexpr (index == number::Win_test) return test_window(words...);
    return forward(function_address(index), words...);
  };
  if constexpr (is_local(index)) return timed_at_times(index, make);
  return timed(index, Clocking::may_wait, make);
}

template <class... Words>
__attribute__((noinline)) Word count_freeing(Word (*count)(Words...), Words... words) {
  const Word array[] = {words...};
  const BeingFreed freeing(array[0] && attached() ? *as<const MPI_Comm*>(array[0]) : MPI_Comm{});
  return count(words...);
}

template <uint32_t index, class... Words>
inline Word counted(Words... words) {
  if (comes_from_fortran(index)) return forward_from_fortran(index, words...);
  if (const AnyFunction tool = tool_behind(index)) {
    if constexpr (index == number::Pcontrol) {
      control(words...);
      trace::count_passed(index, 0);
    }
    return forward(tool, words...);
  }
  if constexpr (frees_communicator(index)) return count_freeing(count_and_forward<index, Words...>, words...);
  const Word code = count_and_forward<index>(words...);
  if constexpr (makes_communicator(index)) {
    if (int(code) == MPI_SUCCESS) made_communicator<index>(words...);
  }
  count_windows<index>(int(code));
  return code;
}

// A call by its PMPI name. Where another tool has an MPI_X (shim/tools.hpp) this is how it goes on: `own`, Stretto's MPI_X, makes
// it. Others are neither counted nor taken, but what Stretto must see to is. Of those that MPI makes itself MPI alone is in
// charge.
template <class... Words>
__attribute__((noinline)) Word by_pmpi_name_at_length(uint32_t index, const void* caller, Word (*own)(Words...), Words... words) {
  if (is_of_mpi(caller)) return forward(function_address(index), words...);
  const Order order = tool_order(index);
  const bool was_seen = index == number::Pcontrol && order == Order::behind;
  if (order != Order::alone && !was_seen) {
    if (order == Order::behind) called_by_tool = index + 1;
    return own(words...);
  }
  Word array[] = {words..., 0};
  const BeingFreed freeing(frees_communicator(index) && array[0] && attached() ? *as<const MPI_Comm*>(array[0]) : MPI_Comm{});
  const Word code = Forwarding<Words...>{index}(array);
  if (int(code) == MPI_SUCCESS) {
    note_window(index);
    if (makes_of_session(index) && attached()) made_of_session(*as<const MPI_Comm*>(array[sizeof...(words) - 1]));
  }
  return code;
}
template <uint32_t index, class... Words>
__attribute__((always_inline)) inline Word by_pmpi_name(Word (*own)(Words...), Words... words) {
  if (comes_from_fortran(index)) return forward_from_fortran(index, words...);
  constexpr bool noted = frees_communicator(index) || concerns_windows(index) || makes_of_session(index);
  if (__builtin_expect(!noted && is_alone(index) && !more_to_do(index), 1)) return forward(function_address(index), words...);
  return by_pmpi_name_at_length(index, __builtin_return_address(0), own, words...);
}

// A call that prepares a collective: the last words are communicator, info and request.
template <uint32_t index, Kind kind, class... Words>
inline Word prepared(const char* parts, WordsHook hook, Words... words) {
  if (comes_from_fortran(index)) return forward_from_fortran(index, words...);
  if (const AnyFunction tool = tool_behind(index)) return forward(tool, words...);
  Word array[] = {words...};
  const auto make = [=](Word* w) {
    constexpr size_t last = sizeof...(Words) - 1;
    if (taking() && prepare({kind, parts}, hook, w, as<MPI_Comm>(w[last - 2]), as<MPI_Request*>(w[last])))
      return Word(MPI_SUCCESS);
    return Forwarding<Words...>{index}(w);
  };
  if (profile::watches()) return profiled(index, array, make);
  return timed(index, Clocking::every_call, [&] { return make(array); });
}

// Where acceleration is off.
Word forward_untaken(uint32_t index, Kind kind, bool waits, Plain plain);

// What a hook has declined. Where that took no time it is timed as a call without a hook.
Word forward_declined(uint32_t index, Kind kind, trace::Timing& timing, const Call& call, Plain plain);

// Asks the hook; where it declines, `plain` makes the call. Returns the code. `alone` tells whether this is the communicator's
// only process.
template <class Alone, class Hook>
inline Word ask_or_forward(uint32_t index, Kind kind, Alone alone, const Hook& hook, Plain plain) {
  if (!taking()) return forward_untaken(index, kind, !is_local(index) && !alone(), plain);
  trace::Timing timing{uint32_t(kind)};
  Call call;
  const bool done = hook(call);
  if (!done) return forward_declined(index, kind, timing, call, plain);
  const Word code = Word(call.code);
  const uint64_t spent = timing.stop();
  trace::count_accelerated_call(index, uint32_t(kind), call.algorithm, spent, call.bytes);
  return code;
}

// The same, told to the profile: `profiled` is the call before it was made. Every call is timed.
Word ask_or_forward_profiled(profile::Call& profiled, Kind kind, Ask hook, Plain plain);

template <class... Words>
__attribute__((noinline)) Word taken_profiled(uint32_t index, Kind kind, Ask hook, Words... words) {
  const uint64_t begin = ticks();
  Word array[] = {words..., 0};
  profile::Call call(index, array, profile::Language::c, begin);
  return ask_or_forward_profiled(call, kind, hook, [&] { return forward(function_address(index), words...); });
}

template <uint32_t index, Kind kind, class Hook, class... Words>
inline Word taken(Hook hook, Words... words) {
  if (comes_from_fortran(index)) return forward_from_fortran(index, words...);
  if (const AnyFunction tool = tool_behind(index)) return forward(tool, words...);
  if (profile::watches()) return taken_profiled(index, kind, hook, words...);
  const auto alone = [&] {
    const Word array[] = {words...};  // the communicator is the last word, or there is a request behind it
    return attached() && has_one_process(as<MPI_Comm>(array[sizeof...(words) - 1]));
  };
  return ask_or_forward(index, kind, alone, hook, [&] { return forward(function_address(index), words...); });
}

}  // namespace stretto::shim
