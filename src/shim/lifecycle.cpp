// The wrappers written by hand: MPI_Init, MPI_Init_thread, MPI_Finalize and MPI_Abort, in C and for Open MPI's Fortran.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/handles.hpp"
#include "shim/wrap.hpp"
#if defined(STRETTO_MPI_OMPI)
#include "shim/fortran.hpp"
#endif

using namespace stretto;
using namespace stretto::shim;

namespace {

void describe_library(trace::Header* header) {
  static char text[8192];  // as much as any MPI writes
  int length = 0;
  if (mpi().Get_library_version.present()) mpi().Get_library_version(text, &length);
  text[strcspn(text, "\n")] = '\0';
  snprintf(header->mpi_library, sizeof header->mpi_library, "%.*s", int(sizeof header->mpi_library) - 1, text);
}

void describe_world(trace::Header* header) {
  if (!comm_world()) return;
  int rank = -1;
  int size = 0;
  mpi().Comm_rank(comm_world(), &rank);
  mpi().Comm_size(comm_world(), &size);
  header->world_rank = rank;
  header->world_size = size;
}

// After a successful MPI_Init.
void initialised() {
  trace::Header* header = trace::header();
  gethostname(header->host, sizeof header->host - 1);
  header->init_ns = now_ns();
  trace::calibrate();
  describe_library(header);
  const bool right = library().flavor == own_flavor();
  if (right) describe_world(header);
  header->stage = uint32_t(trace::Stage::initialised);
  if (!right) return;
  prepare_handles();
  attach();
  attached_now.store(true, std::memory_order_release);
}

// Before MPI_Finalize.
void finalizing() {
  if (attached_now.exchange(false)) detach();
  trace::header()->finalize_ns = now_ns();
  trace::calibrate();
  trace::header()->stage = uint32_t(trace::Stage::finalized);
}

// Before MPI_Abort, which does not return: its count in the record is the mark it leaves.
void aborting() {
  library();
  trace::count_call(number::Abort, 0, 0);
  trace::calibrate();
}

template <class Plain>
Word init_with(uint32_t index, Plain plain) {
  const uint64_t begin = ticks();
  const Word code = plain();
  trace::count_call(index, ticks() - begin, 0);
  if (int(code) == MPI_SUCCESS) initialised();
  return code;
}

template <class Plain>
Word finalize_with(Plain plain) {
  library();
  finalizing();
  const uint64_t begin = ticks();
  const Word code = plain();
  trace::count_call(number::Finalize, ticks() - begin, 0);
  return code;
}

}  // namespace

extern "C" {

STRETTO_WRAPPER Word MPI_Init(Word argc, Word argv) {
  return init_with(number::Init, [&] { return forward(function_address(number::Init), argc, argv); });
}

STRETTO_WRAPPER Word MPI_Init_thread(Word argc, Word argv, Word required, Word provided) {
  return init_with(number::Init_thread, [&] { return forward(function_address(number::Init_thread), argc, argv, required, provided); });
}

STRETTO_WRAPPER Word MPI_Finalize() {
  return finalize_with([] { return forward(function_address(number::Finalize)); });
}

STRETTO_WRAPPER Word MPI_Abort(Word comm, Word code) {
  aborting();
  return forward(function_address(number::Abort), comm, code);
}

}  // extern "C"

#if defined(STRETTO_MPI_OMPI)
namespace {

// Calls a Fortran function whose last argument is the error code, optional in mpi_f08; returns the code.
template <class... Words>
Word call_fortran(uint32_t index, Form form, Word ierror, Words... words) {
  MPI_Fint code = MPI_SUCCESS;
  MPI_Fint* result = ierror ? as<MPI_Fint*>(ierror) : &code;
  forward(fortran_function(index, form), words..., reinterpret_cast<Word>(result));
  return Word(*result);
}

void fortran_init(Form form, Word ierror) {
  init_with(number::Init, [&] { return call_fortran(number::Init, form, ierror); });
}

void fortran_init_thread(Form form, Word required, Word provided, Word ierror) {
  init_with(number::Init_thread, [&] { return call_fortran(number::Init_thread, form, ierror, required, provided); });
}

void fortran_finalize(Form form, Word ierror) {
  finalize_with([&] { return call_fortran(number::Finalize, form, ierror); });
}

void fortran_abort(Form form, Word comm, Word code, Word ierror) {
  aborting();
  call_fortran(number::Abort, form, ierror, comm, code);
}

}  // namespace

extern "C" {

STRETTO_WRAPPER void mpi_init_(Word ierror) { fortran_init(Form::mpif, ierror); }
STRETTO_WRAPPER void mpi_init_f08_(Word ierror) { fortran_init(Form::f08, ierror); }
STRETTO_WRAPPER void mpi_init_thread_(Word required, Word provided, Word ierror) { fortran_init_thread(Form::mpif, required, provided, ierror); }
STRETTO_WRAPPER void mpi_init_thread_f08_(Word required, Word provided, Word ierror) { fortran_init_thread(Form::f08, required, provided, ierror); }
STRETTO_WRAPPER void mpi_finalize_(Word ierror) { fortran_finalize(Form::mpif, ierror); }
STRETTO_WRAPPER void mpi_finalize_f08_(Word ierror) { fortran_finalize(Form::f08, ierror); }
STRETTO_WRAPPER void mpi_abort_(Word comm, Word code, Word ierror) { fortran_abort(Form::mpif, comm, code, ierror); }
STRETTO_WRAPPER void mpi_abort_f08_(Word comm, Word code, Word ierror) { fortran_abort(Form::f08, comm, code, ierror); }

}  // extern "C"
#endif
