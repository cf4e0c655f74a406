// Wrappers for Fortran bindings that do not go through the C functions MPI_X. Open MPI: mpif.h and `use mpi` call mpi_x_,
// `use mpi_f08` calls mpi_x_f08_. MPICH: only functions of mpi_f08 without a choice buffer, mpi_x_f08_. All arguments are
// addresses, those of handles point to INTEGERs.
#pragma once
#include "shim/wrap.hpp"

namespace stretto::shim {

enum class Form : uint32_t { mpif, f08 };

// The library's own Fortran function for the table's function `index`.
AnyFunction fortran_function(uint32_t index, Form form);

// The C meaning of a Fortran choice buffer: MPI_IN_PLACE and MPI_BOTTOM are addresses of variables there.
void* fortran_buffer(Word address);

template <class T>
inline T fortran_value(Word address) {
  const MPI_Fint value = *reinterpret_cast<const MPI_Fint*>(address);
  if constexpr (std::is_integral_v<T>) {
    return T(value);  // MPICH's handles too
  } else if constexpr (std::is_same_v<T, MPI_Comm>) {
    return mpi().Comm_f2c(value);
  } else if constexpr (std::is_same_v<T, MPI_Datatype>) {
    return mpi().Type_f2c(value);
  } else if constexpr (std::is_same_v<T, MPI_Request>) {
    return mpi().Request_f2c(value);
  } else {
    static_assert(std::is_same_v<T, MPI_Op>);
    return mpi().Op_f2c(value);
  }
}

template <class... Words>
inline Word forward_fortran(AnyFunction function, Words... words) {
  in_fortran = true;
  const Word result = forward(function, words...);
  in_fortran = false;
  return result;
}

// The words of the Fortran call and of the C call that means the same; MPI's error code is the last word, and may be absent.
template <class... Words>
struct BothWords {
  static constexpr size_t count = sizeof...(Words);
  Word fortran[count];
  Word c[count + 1];
  BothWords(uint32_t index, Words... words) : fortran{words...} {
    profile::words_from_fortran(profile::descriptors[index].kinds, fortran, c);
  }
  Word forward(uint32_t index, Form form) { return forward_all(index, form, std::index_sequence_for<Words...>()); }
  int code() const { return fortran[count - 1] ? int(*as<const MPI_Fint*>(fortran[count - 1])) : int(MPI_SUCCESS); }

 private:
  template <size_t... positions>
  Word forward_all(uint32_t index, Form form, std::index_sequence<positions...>) {
    fortran_forward(index, form, fortran[positions]...);
    return 0;
  }
};

template <class Make, class... Words>
__attribute__((noinline)) void fortran_profiled(uint32_t index, Make make, Words... words) {
  const trace::CallClock clock(pace_of(index), profile::clocking(index), profile::last_reading);
  BothWords<Words...> both(index, words...);
  profile::Call call(index, both.c, profile::Language::fortran, clock.begin());
  call.facts.timed = clock.is_timed();
  profile::inside = true;
  profile::enter_call(call);
  const int8_t status = call.d().status;
  if (call.statuses != nullptr && status >= 0) both.fortran[status] = both.c[status];
  make(both);
  call.end = call.begin + clock.spent();
  if (clock.is_timed()) profile::last_reading = call.begin;
  profile::leave_call(call, both.code());
  profile::inside = false;
  trace::count_passed(index, call.end - call.begin);
}

template <Form form, class... Words>
inline void fortran_control(Word level, Words...) {
  profile::control(fortran_value<int>(level));
}

inline void cancel_in_fortran(const Word* words) {
  MPI_Request request = fortran_value<MPI_Request>(words[0]);
  const int code = cancel_any(&request);
  if (words[1]) *as<MPI_Fint*>(words[1]) = MPI_Fint(code);
}

// A call while nonblocking collectives are outstanding; the last word is the error code.
template <Form form>
void complete_in_fortran(uint32_t index, Word* words, uint32_t count) {
  MPI_Fint code = MPI_SUCCESS;
  Word& ierror = words[count - 1];
  if (ierror == 0) ierror = reinterpret_cast<Word>(&code);
  const auto call = [](AnyFunction function, Word* w, uint32_t n) {
    in_fortran = true;
    forward_words(function, w, n);
    in_fortran = false;
    return int(*as<const MPI_Fint*>(w[n - 1]));
  };
  const auto request = [](Word array, int i) {
    return fortran_value<MPI_Request>(reinterpret_cast<Word>(as<const MPI_Fint*>(array) + i));
  };
  const int result = complete({index, words, count, [](uint32_t i) { return fortran_function(i, form); }, call, request, false});
  *as<MPI_Fint*>(ierror) = MPI_Fint(result);
}

template <class Handle>
MPI_Fint in_fortran_terms(Handle request) {
  if constexpr (std::is_pointer_v<Handle>)
    return mpi().Request_c2f(request);
  else
    return MPI_Fint(request);
}

// Of MPI_Start and its relatives. False: MPI's function must be called.
inline bool persistent_in_fortran(uint32_t index, const Word* words) {
  if (index == number::Request_free) return forget_persistent(fortran_value<MPI_Request>(words[0])), false;
  const bool several = index == number::Startall;
  auto* requests = as<MPI_Fint*>(words[several ? 1 : 0]);
  int code = MPI_SUCCESS;
  for (int i = 0; code == MPI_SUCCESS && i < (several ? fortran_value<int>(words[0]) : 1); ++i) {
    const auto given = fortran_value<MPI_Request>(reinterpret_cast<Word>(requests + i));
    auto request = given;
    code = start_any(&request);
    if (request != given) requests[i] = in_fortran_terms(request);
  }
  if (words[several ? 2 : 1]) *as<MPI_Fint*>(words[several ? 2 : 1]) = MPI_Fint(code);
  return true;
}

template <class... Words>
void fortran_forward(uint32_t index, Form form, Words... words) {
  if (!more_to_do(index)) return void(forward_fortran(fortran_function(index, form), words...));
  if (!waits_for_requests(index) && !tests_requests(index)) {
    advance();
    const Word array[] = {words..., 0};
    if (frees_communicator(index) && attached()) end_operations_on(fortran_value<MPI_Comm>(array[0]));
    if (index == number::Cancel) return cancel_in_fortran(array);
    if (concerns_persistent(index) && any_persistent() && persistent_in_fortran(index, array)) return;
    return void(forward_fortran(fortran_function(index, form), words...));
  }
  Word array[] = {words..., 0};
  if (form == Form::mpif) return complete_in_fortran<Form::mpif>(index, array, sizeof...(words));
  complete_in_fortran<Form::f08>(index, array, sizeof...(words));
}

template <class... Words>
inline void fortran_made_communicator(Words... words) {
  if (!attached()) return;
  const Word array[] = {words...};
  constexpr size_t last = sizeof...(words) - 1;
  if (array[last] && *as<const MPI_Fint*>(array[last]) != MPI_SUCCESS) return;
  const MPI_Comm comm = fortran_value<MPI_Comm>(array[last - 1]);
  if (comm != comm_null()) prepare_communicator(comm);
}

template <uint32_t index, Form form, class... Words>
inline void fortran_counted(Words... words) {
  if constexpr (index == number::Pcontrol) fortran_control<form>(words...);
  if (profile::watches()) {
    fortran_profiled(index, [](auto& both) { both.forward(index, form); }, words...);
  } else {
    timed(index, more_to_do(index) ? Clocking::every_call : clocking(index), [&] {
      fortran_forward(index, form, words...);
      return Word(MPI_SUCCESS);
    });
  }
  if constexpr (makes_communicator(index)) fortran_made_communicator(words...);
  if constexpr (makes_window(index) || index == number::Win_free) {
    const Word array[] = {words...};
    const Word code = array[sizeof...(words) - 1];
    count_windows<index>(code ? *as<const MPI_Fint*>(code) : MPI_SUCCESS);
  }
}

// Starts a nonblocking collective; the request of Fortran is an INTEGER.
template <class Hook>
bool start_in_fortran(Hook hook, MPI_Comm comm, Word request, Call& call) {
  MPI_Request made{};
  if (!start(hook, comm, &made, call)) return false;
  *as<MPI_Fint*>(request) = in_fortran_terms(made);
  return true;
}

// A call that prepares a collective: the last words are communicator, info, request and the error code.
template <uint32_t index, Kind kind, Form form, class... Words>
inline void fortran_prepared(const char* parts, WordsHook hook, Words... words) {
  const auto make = [=](auto& both) {
    constexpr size_t request = sizeof...(Words) - 2;
    MPI_Request made{};
    if (!taking() || !prepare({kind, parts}, hook, both.c, fortran_value<MPI_Comm>(both.fortran[request - 2]), &made))
      return void(both.forward(index, form));
    *as<MPI_Fint*>(both.fortran[request]) = in_fortran_terms(made);
    if (both.fortran[request + 1]) *as<MPI_Fint*>(both.fortran[request + 1]) = MPI_SUCCESS;
  };
  if (profile::watches()) return fortran_profiled(index, make, words...);
  timed(index, Clocking::every_call, [&] {
    BothWords<Words...> both(index, words...);
    make(both);
    return Word(MPI_SUCCESS);
  });
}

template <uint32_t index, Kind kind, class Hook, class Plain, class... Words>
__attribute__((noinline)) Word fortran_taken_profiled(Hook hook, Plain plain, Words... words) {
  const uint64_t begin = ticks();
  BothWords<Words...> both(index, words...);
  profile::Call call(index, both.c, profile::Language::fortran, begin);
  return ask_or_forward_profiled<kind>(call, hook, plain);
}

template <uint32_t index, Kind kind, Form form, class Hook, class... Words>
inline void fortran_taken(Hook hook, Word ierror, Words... words) {
  bool forwarded = false;
  const auto plain = [&] {
    forwarded = true;
    const Word result = forward_fortran(fortran_function(index, form), words...);
    return ierror ? Word(*as<const MPI_Fint*>(ierror)) : result;
  };
  const auto alone = [] { return false; };  // MPI would have to be asked for C's handle
  const Word code = profile::watches() ? fortran_taken_profiled<index, kind>(hook, plain, words...)
                                       : ask_or_forward<kind>(index, alone, hook, plain);
  if (!forwarded && ierror) *as<MPI_Fint*>(ierror) = MPI_Fint(code);  // optional in mpi_f08
}

}  // namespace stretto::shim
