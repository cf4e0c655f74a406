// What happens around MPI_Init, MPI_Finalize and MPI_Abort, whichever language calls them.
#pragma once
#include "shim/wrap.hpp"

namespace stretto::shim {

void initialised();  // after a successful MPI_Init
void finalizing();   // before MPI_Finalize
void aborting();     // before MPI_Abort, which does not return: its count in the record is the mark it leaves

// `plain` makes the call and returns its code.
template <class Plain>
Word init_with(uint32_t index, Plain plain) {
  if (in_fortran) return plain();
  const uint64_t begin = ticks();
  const Word code = plain();
  trace::count_call(index, ticks() - begin, 0);
  if (int(code) == MPI_SUCCESS) initialised();
  return code;
}

template <class Plain>
Word finalize_with(Plain plain) {
  if (in_fortran) return plain();
  finalizing();
  const uint64_t begin = ticks();
  const Word code = plain();
  trace::count_call(number::Finalize, ticks() - begin, 0);
  return code;
}

template <class Plain>
Word abort_with(Plain plain) {
  if (!in_fortran) aborting();
  return plain();
}

}  // namespace stretto::shim
