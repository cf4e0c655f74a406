#include "shim/wrap.hpp"

namespace stretto::shim {

namespace {

uint8_t outcome_of(bool asked, bool done, const Call& call) {
  if (!asked) return trace::none8;
  return uint8_t(done ? call.algorithm : 128 + call.reason);
}

}  // namespace

// `never_waits`: its turn to be timed has come.
Word timed(uint32_t index, Clocking how, Plain make) {
  trace::Pace& pace = pace_of(index);
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

Word profiled(uint32_t index, Word* words, Make make) {
  const trace::CallClock clock(pace_of(index), profile::clocking(index), profile::last_reading);
  profile::Call call(index, words, profile::Language::c, clock.begin());
  call.facts.timed = clock.is_timed();
  profile::inside = true;
  profile::enter_call(call);
  const Word code = make(words);
  if (__builtin_expect(int(code) != MPI_SUCCESS, 0)) profile::wait_for_rest(call);
  call.end = call.begin + clock.spent();
  if (clock.is_timed()) profile::last_reading = call.begin;
  profile::leave_call(call, int(code));
  profile::inside = false;
  trace::count_passed(index, call.end - call.begin);
  return code;
}

Word forward_untaken(uint32_t index, Kind kind, bool waits, Plain plain) {
  const bool asked = attached();
  const trace::CallClock clock(pace_of(index), waits ? Clocking::may_wait : Clocking::never_waits);
  const Word code = plain();
  const uint64_t spent = clock.spent();
  trace::count_passed(index, spent);
  if (asked) trace::count_declined(uint32_t(kind), uint32_t(select::Reason::not_joined), spent, 0);
  return code;
}

Word forward_declined(uint32_t index, Kind kind, trace::Timing& timing, const Call& call, Plain plain) {
  Word code;
  uint64_t spent;
  if (call.brief || timing.took_long() || trace::times_every_call()) {
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

Word ask_or_forward_profiled(profile::Call& profiled, Kind kind, Ask hook, Plain plain) {
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

}  // namespace stretto::shim
