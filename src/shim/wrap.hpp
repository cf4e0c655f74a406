// What the generated wrappers consist of: count, ask the hook where there is one, forward.
#pragma once
#include <type_traits>
#include <utility>

#include "base/clock.hpp"
#include "select/reason.hpp"
#include "shim/between_nodes.hpp"
#include "shim/hooks.hpp"
#include "shim/mpi.hpp"
#include "shim/nonblocking.hpp"
#include "shim/paces.hpp"
#include "shim/persistent.hpp"
#include "shim/process.hpp"
#include "shim/profile/profile.hpp"
#include "shim/twins.hpp"
#include "trace/call_clock.hpp"
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

template <class... Words, size_t... positions>
inline Word forward_each(AnyFunction function, const Word* words, std::index_sequence<positions...>) {
  return forward(function, Words(words[positions])...);
}

using trace::Clocking;

constexpr Clocking clocking(uint32_t index) {
  return is_local(index) ? Clocking::never_waits : Clocking::may_wait;
}

// Makes a call and counts it.
template <class Make>
inline Word timed(uint32_t index, Clocking how, Make make) {
  trace::Pace& pace = pace_of(index);
  if (how == Clocking::never_waits && !pace.timed()) {
    trace::count_passed(index, 0);
    return make();
  }
  if (how == Clocking::never_waits) {
    const uint64_t begin = ticks();
    const Word code = make();
    trace::count_passed(index, pace.counted(ticks() - begin));
    return code;
  }
  const trace::CallClock clock(pace, how);
  const Word code = make();
  trace::count_passed(index, clock.spent());
  return code;
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
template <class... Words>
inline void made_communicator(Words... words) {
  if (!attached()) return;
  const Word array[] = {words...};
  const auto* comm = as<const MPI_Comm*>(array[sizeof...(words) - 1]);
  if (comm != nullptr && *comm != comm_null()) prepare_communicator(*comm);
}

// The same call, told to the profile, which may have MPI write its statuses elsewhere.
template <class Make>
__attribute__((noinline)) Word profiled(uint32_t index, Word* array, Make make) {
  const trace::CallClock clock(pace_of(index), profile::clocking(index), profile::last_reading);
  profile::Call call(index, array, profile::Language::c, clock.begin());
  call.facts.timed = clock.is_timed();
  profile::inside = true;
  profile::enter_call(call);
  const Word code = make(array);
  if (__builtin_expect(int(code) != MPI_SUCCESS, 0)) profile::wait_for_rest(call);
  call.end = call.begin + clock.spent();
  if (clock.is_timed()) profile::last_reading = call.begin;
  profile::leave_call(call, int(code));
  profile::inside = false;
  trace::count_passed(index, call.end - call.begin);
  return code;
}

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

template <uint32_t index, class... Words>
inline Word count_and_forward(Words... words) {
  if (__builtin_expect(in_fortran, 0)) return forward(function_address(index), words...);
  if constexpr (index == number::Pcontrol) (profile::control(int(words)), ...);
  if (profile::watches()) {
    Word array[] = {words..., 0};
    return profiled(index, array, Forwarding<Words...>{index});
  }
  if (more_to_do(index)) return count_advancing(index, words...);
  return timed(index, clocking(index), [&] {
    if constexpr (index == number::Win_test) return test_window(words...);
    return forward(function_address(index), words...);
  });
}

template <uint32_t index, class... Words>
inline Word counted(Words... words) {
  const Word code = count_and_forward<index>(words...);
  if constexpr (makes_communicator(index)) {
    if (int(code) == MPI_SUCCESS && !in_fortran) made_communicator(words...);
  }
  if (!in_fortran) count_windows<index>(int(code));
  return code;
}

// A call that prepares a collective: the last words are communicator, info and request.
template <uint32_t index, Kind kind, class... Words>
inline Word prepared(const char* parts, WordsHook hook, Words... words) {
  if (__builtin_expect(in_fortran, 0)) return forward(function_address(index), words...);
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
template <Kind kind, class Plain>
inline Word forward_untaken(uint32_t index, bool waits, Plain plain) {
  const bool asked = attached();
  const trace::CallClock clock(pace_of(index), waits ? Clocking::may_wait : Clocking::never_waits);
  const Word code = plain();
  const uint64_t spent = clock.spent();
  trace::count_passed(index, spent);
  if (asked) trace::count_declined(uint32_t(kind), uint32_t(select::Reason::not_joined), spent, 0);
  return code;
}

// What a hook has declined. Where that took no time it is timed as a call without a hook.
template <Kind kind, class Plain>
inline Word forward_declined(uint32_t index, trace::Timing& timing, const Call& call, Plain plain) {
  Word code;
  uint64_t spent;
  if (call.brief || timing.took_long()) {
    if (!call.brief) trace::takes_long();
    code = plain();
    spent = timing.stop(call.brief);
  } else {
    const trace::CallClock clock(pace_of(index), Clocking::may_wait);
    code = plain();
    spent = clock.spent();
    timing.leave();
  }
  trace::count_declined_call(index, uint32_t(kind), call.reason, spent, call.bytes);
  return code;
}

// Asks the hook; where it declines, `plain` makes the call. Returns the code. `alone` tells whether this is the communicator's
// only process.
template <Kind kind, class Alone, class Hook, class Plain>
inline Word ask_or_forward(uint32_t index, Alone alone, Hook hook, Plain plain) {
  if (!taking()) return forward_untaken<kind>(index, !is_local(index) && !alone(), plain);
  trace::Timing timing{uint32_t(kind)};
  Call call;
  const bool done = hook(call);
  if (!done) return forward_declined<kind>(index, timing, call, plain);
  const Word code = Word(call.code);
  const uint64_t spent = timing.stop();
  trace::count_accelerated_call(index, uint32_t(kind), call.algorithm, spent, call.bytes);
  return code;
}

inline uint8_t outcome_of(bool asked, bool done, const Call& call) {
  if (!asked) return trace::none8;
  return uint8_t(done ? call.algorithm : 128 + call.reason);
}

// The same, told to the profile: `profiled` is the call before it was made. Every call is timed.
template <Kind kind, class Hook, class Plain>
inline Word ask_or_forward_profiled(profile::Call& profiled, Hook hook, Plain plain) {
  profile::inside = true;
  profile::enter_call(profiled);
  trace::stopwatch.begin = profiled.begin;
  const bool asked = attached();
  const uint64_t given = given_to_other_nodes;
  Call call;
  const bool done = asked && hook(call);
  const Word code = done ? Word(call.code) : plain();
  profiled.end = ticks();
  profiled.facts.between_nodes = given_to_other_nodes - given;
  trace::stopwatch.begin = 0;
  trace::stopwatch.is_long = false;
  profiled.facts.outcome = outcome_of(asked, done, call);
  profile::leave_call(profiled, int(code));
  profile::inside = false;
  const uint64_t spent = profiled.end - profiled.begin;
  if (done)
    trace::count_accelerated_call(profiled.function, uint32_t(kind), call.algorithm, spent, call.bytes);
  else if (asked)
    trace::count_declined_call(profiled.function, uint32_t(kind), call.reason, spent, call.bytes);
  else
    trace::count_call(profiled.function, spent, call.bytes);
  return code;
}

template <uint32_t index, Kind kind, class Hook, class... Words>
__attribute__((noinline)) Word taken_profiled(Hook hook, Words... words) {
  const uint64_t begin = ticks();
  Word array[] = {words..., 0};
  profile::Call call(index, array, profile::Language::c, begin);
  return ask_or_forward_profiled<kind>(call, hook, [&] { return forward(function_address(index), words...); });
}

template <uint32_t index, Kind kind, class Hook, class... Words>
inline Word taken(Hook hook, Words... words) {
  if (__builtin_expect(in_fortran, 0)) return forward(function_address(index), words...);
  if (profile::watches()) return taken_profiled<index, kind>(hook, words...);
  const auto alone = [&] {
    const Word array[] = {words...};  // the communicator is the last word, or there is a request behind it
    return attached() && has_one_process(as<MPI_Comm>(array[sizeof...(words) - 1]));
  };
  return ask_or_forward<kind>(index, alone, hook, [&] { return forward(function_address(index), words...); });
}

}  // namespace stretto::shim
