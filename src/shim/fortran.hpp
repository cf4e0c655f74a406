// Wrappers for Fortran bindings that do not go through the C functions MPI_X. Open MPI: mpif.h and `use mpi` call mpi_x_,
// `use mpi_f08` calls mpi_x_f08_. MPICH: only functions of mpi_f08 without a choice buffer, mpi_x_f08_. All arguments are
// addresses, those of handles point to INTEGERs.
#pragma once
#include <tuple>

#include "shim/wrap.hpp"

namespace stretto::shim {

enum class Form : uint32_t { mpif, f08 };

// The library's own Fortran function for the table's function `index`.
AnyFunction fortran_function(uint32_t index, Form form);

// The function of a tool behind this library (shim/tools.hpp) that the program would have called. Null: none.
AnyFunction fortran_tool(uint32_t index, Form form);

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
inline Word forward_fortran(uint32_t index, Form form, Words... words) {
  const AnyFunction function = fortran_function(index, form);
  const uint32_t former = std::exchange(in_fortran, index + 1);
  const Word result = forward(function, words...);
  in_fortran = former;
  return result;
}

// The words of a Fortran call, with room for those of the longest; MPI's error code is the last, and may be absent.
struct FortranWords {
  static constexpr uint32_t most = most_words;
  const uint32_t index;  // of the function
  const Form form;
  const uint32_t count;
  Word of[most];

  template <class... Words>
  FortranWords(uint32_t function, Form its_form, Words... words)
      : index(function), form(its_form), count(sizeof...(words)), of{words...} {
    static_assert(sizeof...(words) <= most);
  }
  int code() const;
};

// Makes a call that is not taken over, beside what there is to do for Stretto's own operations, and counts it.
void fortran_unusual(FortranWords words);
// Calls that prepare a collective: the last words are communicator, info, request and the error code.
void fortran_prepare(Kind kind, const char* parts, WordsHook hook, FortranWords words);
// Asks the hook; where it declines, `plain` makes the call.
Word fortran_ask(uint32_t index, Kind kind, Ask hook, Plain plain);
Word fortran_ask_profiled(Kind kind, Ask hook, Plain plain, FortranWords words);

struct FreedInFortran : BeingFreed {
  FreedInFortran(Word comm, Word) : BeingFreed(attached() ? fortran_value<MPI_Comm>(comm) : MPI_Comm{}) {}
};
struct NothingFreed {
  template <class... Words>
  explicit NothingFreed(Words...) {}
};

inline void fortran_control(Word level, Word) {
  profile::control(fortran_value<int>(level));
}

void fortran_made_communicator(const FortranWords& words);

template <uint32_t index, Form form, class... Words>
inline void fortran_counted(Words... words) {
  if constexpr (index == number::Pcontrol) fortran_control(words...);
  if (const AnyFunction tool = fortran_tool(index, form)) return void(forward(tool, words...));
  using Freeing = std::conditional_t<frees_communicator(index), FreedInFortran, NothingFreed>;
  const Freeing freeing(words...);
  if (profile::watches() || more_to_do(index)) {
    fortran_unusual({index, form, words...});
  } else if constexpr (is_local(index)) {
    timed_at_times(index, [&] { return forward_fortran(index, form, words...); });
  } else {
    timed(index, Clocking::may_wait, [&] { return forward_fortran(index, form, words...); });
  }
  if constexpr (makes_communicator(index)) fortran_made_communicator({index, form, words...});
  if constexpr (makes_window(index) || index == number::Win_free) {
    const Word code = std::get<sizeof...(words) - 1>(std::tie(words...));
    count_windows<index>(code ? *as<const MPI_Fint*>(code) : MPI_SUCCESS);
  }
}

// Makes a communicator of a session, whose tag has a length behind the error code. It is not counted.
template <uint32_t index, Form form, class... Words>
inline void fortran_of_session(Word made, Word ierror, Words... words) {
  if (const AnyFunction tool = fortran_tool(index, form)) return void(forward(tool, words...));
  forward_fortran(index, form, words...);
  fortran_made_communicator({index, form, made, ierror});
}

// Starts a nonblocking collective; the request of Fortran is an INTEGER.
bool start_in_fortran(Ask hook, MPI_Comm comm, Word request, Call& call);

template <uint32_t index, Kind kind, Form form, class... Words>
inline void fortran_prepared(const char* parts, WordsHook hook, Words... words) {
  if (const AnyFunction tool = fortran_tool(index, form)) return void(forward(tool, words...));
  fortran_prepare(kind, parts, hook, {index, form, words...});
}

template <uint32_t index, Kind kind, Form form, class Hook, class... Words>
inline void fortran_taken(const Hook& hook, Word ierror, Words... words) {
  if (const AnyFunction tool = fortran_tool(index, form)) return void(forward(tool, words...));
  bool forwarded = false;
  const auto plain = [&] {
    forwarded = true;
    const Word result = forward_fortran(index, form, words...);
    return ierror ? Word(*as<const MPI_Fint*>(ierror)) : result;
  };
  const Word code = profile::watches() ? fortran_ask_profiled(kind, hook, plain, {index, form, words...})
                                       : fortran_ask(index, kind, hook, plain);
  if (!forwarded && ierror) *as<MPI_Fint*>(ierror) = MPI_Fint(code);  // optional in mpi_f08
}

}  // namespace stretto::shim
