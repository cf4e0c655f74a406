// Words of Fortran calls: every argument is an address.
#include <dlfcn.h>

#include "shim/fortran.hpp"
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

// What a variable of the MPI library that holds an address holds.
const void* held_by(const char* symbol) {
  const void* const* variable = static_cast<const void* const*>(dlsym(RTLD_DEFAULT, symbol));
  return variable ? *variable : nullptr;
}

}  // namespace

void words_from_fortran(const char* kinds, const Word* from, Word* to) {
  for (size_t i = 0; kinds[i] != '\0'; ++i) to[i] = from[i] ? value_of(kinds[i], from[i]) : 0;
}

bool fortran_ignores_status(const void* address) {
  static const void* const known[] = {
      held_by("MPI_F_STATUS_IGNORE"),
      held_by("MPI_F_STATUSES_IGNORE"),
      held_by("MPI_F08_STATUS_IGNORE"),
      held_by("MPI_F08_STATUSES_IGNORE"),
      dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_STATUS_IGNORE_OBJ"),
      dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"),
      dlsym(RTLD_DEFAULT, "mpi_fortran_status_ignore_"),
      dlsym(RTLD_DEFAULT, "mpi_fortran_statuses_ignore_"),
      dlsym(RTLD_DEFAULT, "mpi_fortran_status_ignore"),
      dlsym(RTLD_DEFAULT, "mpi_fortran_statuses_ignore"),
  };
  for (const void* one : known)
    if (one != nullptr && one == address) return true;
  return false;
}

}  // namespace stretto::shim::profile
