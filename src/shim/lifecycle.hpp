// What happens around MPI_Init, MPI_Finalize and MPI_Abort, whichever language calls them.
#pragma once
#include "shim/far_record.hpp"
#include "shim/wrap.hpp"

namespace stretto::shim {

void initialised(uint64_t begin, uint32_t index);  // after a successful MPI_Init (function `index`), which began then
void finalizing(uint64_t begin);                   // before MPI_Finalize
bool aborting();  // before MPI_Abort, which does not return: its count in the record is the mark it leaves. False: it was called
                  // before

// Whether MPI is to let all threads call it, whatever the program asks for: STRETTO_PROGRESS=thread over several nodes.
bool wants_any_thread();

// Whether this thread is in MPI_Init or MPI_Finalize: what MPI itself calls meanwhile, by whatever name, is not the program's.
extern constinit thread_local bool in_lifecycle;
class InLifecycle {
 public:
  InLifecycle() { in_lifecycle = true; }
  ~InLifecycle() { in_lifecycle = false; }
  InLifecycle(const InLifecycle&) = delete;
  InLifecycle& operator=(const InLifecycle&) = delete;
};

// `plain` makes the call and returns its code.
template <class Plain>
Word init_with(uint32_t index, Plain plain) {
  if (in_fortran != 0 || in_lifecycle || is_second()) return plain();
  const InLifecycle here;
  const uint64_t begin = ticks();
  const Word code = plain();
  trace::count_call(index, ticks() - begin, 0);
  if (int(code) == MPI_SUCCESS) initialised(begin, index);
  return code;
}

template <class Plain>
Word finalize_with(Plain plain) {
  if (in_fortran != 0 || in_lifecycle || is_second()) return plain();
  const InLifecycle here;
  const uint64_t entered = ticks();
  finalizing(entered);
  const uint64_t begin = ticks();
  const Word code = plain();
  const uint64_t end = ticks();
  trace::count_call(number::Finalize, end - begin, 0);
  profile::profile_finalized(entered, end);
  send_record();
  return code;
}

template <class Plain>
Word abort_with(Plain plain) {
  if (in_fortran == 0 && !is_second() && aborting()) send_record();
  return plain();
}

}  // namespace stretto::shim
