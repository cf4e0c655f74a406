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

template <uint32_t index, Form form, class... Words>
inline void fortran_counted(Words... words) {
  const uint64_t begin = ticks();
  forward_fortran(fortran_function(index, form), words...);
  trace::count_call(index, ticks() - begin, 0);
}

template <uint32_t index, Kind kind, Form form, class Hook, class... Words>
inline void fortran_taken(Hook hook, Word ierror, Words... words) {
  bool forwarded = false;
  const Word code = ask_or_forward<kind>(index, hook, [&] {
    forwarded = true;
    return forward_fortran(fortran_function(index, form), words...);
  });
  if (!forwarded && ierror) *as<MPI_Fint*>(ierror) = MPI_Fint(code);  // optional in mpi_f08
}

}  // namespace stretto::shim
