// Words of Fortran calls: every argument is an address.
#include "shim/fortran.hpp"
#include "shim/loaded.hpp"
#include "shim/profile/words.hpp"

namespace stretto::shim::profile {
namespace {

template <class Handle>
Word handle_word(Word address) {
  const MPI_Fint value = *reinterpret_cast<const MPI_Fint*>(address);
#if defined(STRETTO_MPI_MPICH)
  return Word(uint32_t(value));
#else
  return reinterpret_cast<Word>(from_fortran(value, Handle{}));
#endif
}

Word value_of(char kind, Word address) {
  switch (kind) {
    case 'i':
      return Word(*reinterpret_cast<const MPI_Fint*>(address));
    case 'n':
      return Word(*reinterpret_cast<const MPI_Count*>(address));
    case 'C':
      return handle_word<MPI_Comm>(address);
    case 'D':
      return handle_word<MPI_Datatype>(address);
    case 'O':
      return key_of(fortran_value<MPI_Op>(address));
    case 'W':
      return handle_word<MPI_Win>(address);
    case 'R':
      return handle_word<MPI_Request>(address);
    default:
      return reinterpret_cast<Word>(fortran_buffer(address));
  }
}

// What means that no status is wanted: variables, and what variables of the MPI library hold.
Variables find_ignored() {
  Variables found =
      variables_named({"MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ", "mpi_fortran_status_ignore_",
                       "mpi_fortran_statuses_ignore_", "mpi_fortran_status_ignore", "mpi_fortran_statuses_ignore"});
  for (const void* variable :
       variables_named({"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE"}))
    if (const void* held = *static_cast<const void* const*>(variable)) found.push_back(held);
  return found;
}

}  // namespace

void words_from_fortran(const char* kinds, const Word* from, Word* to) {
  for (size_t i = 0; kinds[i] != '\0'; ++i) to[i] = from[i] ? value_of(kinds[i], from[i]) : 0;
}

bool fortran_ignores_status(const void* address) {
  static const Variables& ignored = *new Variables(find_ignored());  // in use by what runs at the exit, too
  return contains(ignored, address);
}

}  // namespace stretto::shim::profile
