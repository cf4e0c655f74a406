// MPI_Init, MPI_Init_thread, MPI_Finalize and MPI_Abort of Fortran bindings that bypass the C functions.
#include "shim/fortran.hpp"
#include "shim/lifecycle.hpp"

using namespace stretto::shim;

namespace {

// Calls a Fortran function whose last argument is the error code, optional in mpi_f08; returns the code.
template <class... Words>
Word call_fortran(uint32_t index, Form form, Word ierror, Words... words) {
  MPI_Fint code = MPI_SUCCESS;
  MPI_Fint* result = ierror ? as<MPI_Fint*>(ierror) : &code;
  if (const AnyFunction tool = fortran_tool(index, form))
    forward(tool, words..., reinterpret_cast<Word>(result));
  else
    forward_fortran(index, form, words..., reinterpret_cast<Word>(result));
  return Word(*result);
}

void fortran_init(Form form, Word ierror) {
  init_with(number::Init, [&] {
    if (!wants_any_thread() || fortran_tool(number::Init, form)) return call_fortran(number::Init, form, ierror);
    MPI_Fint level = MPI_THREAD_MULTIPLE, provided;
    return call_fortran(number::Init_thread, form, ierror, reinterpret_cast<Word>(&level), reinterpret_cast<Word>(&provided));
  });
}

void fortran_init_thread(Form form, Word required, Word provided, Word ierror) {
  init_with(number::Init_thread, [&] {
    MPI_Fint level = MPI_THREAD_MULTIPLE;
    const Word asked = wants_any_thread() ? reinterpret_cast<Word>(&level) : required;
    return call_fortran(number::Init_thread, form, ierror, asked, provided);
  });
}

void fortran_finalize(Form form, Word ierror) {
  finalize_with([&] { return call_fortran(number::Finalize, form, ierror); });
}

void fortran_abort(Form form, Word comm, Word code, Word ierror) {
  abort_with([&] { return call_fortran(number::Abort, form, ierror, comm, code); });
}

}  // namespace

extern "C" {

#if defined(STRETTO_MPI_OMPI)
STRETTO_WRAPPER void mpi_init_(Word ierror) {
  fortran_init(Form::mpif, ierror);
}
STRETTO_WRAPPER void mpi_init_thread_(Word required, Word provided, Word ierror) {
  fortran_init_thread(Form::mpif, required, provided, ierror);
}
STRETTO_WRAPPER void mpi_finalize_(Word ierror) {
  fortran_finalize(Form::mpif, ierror);
}
STRETTO_WRAPPER void mpi_abort_(Word comm, Word code, Word ierror) {
  fortran_abort(Form::mpif, comm, code, ierror);
}
#endif
STRETTO_WRAPPER void mpi_init_f08_(Word ierror) {
  fortran_init(Form::f08, ierror);
}
STRETTO_WRAPPER void mpi_init_thread_f08_(Word required, Word provided, Word ierror) {
  fortran_init_thread(Form::f08, required, provided, ierror);
}
STRETTO_WRAPPER void mpi_finalize_f08_(Word ierror) {
  fortran_finalize(Form::f08, ierror);
}
STRETTO_WRAPPER void mpi_abort_f08_(Word comm, Word code, Word ierror) {
  fortran_abort(Form::f08, comm, code, ierror);
}

}  // extern "C"
