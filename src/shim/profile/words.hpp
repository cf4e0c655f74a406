// The words of one call, whichever language it came from. Those of Fortran are turned into those of C first; what remains
// different are arrays of handles, whose elements are INTEGERs, and indices, which begin at 1.
#pragma once
#include <type_traits>

#include "shim/profile/descriptor.hpp"

namespace stretto::shim::profile {

enum class Language : uint8_t { c, fortran };

template <class Handle>
inline Handle handle_of(Word word) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Handle>(word);
  else
    return Handle(word);
}

#if defined(STRETTO_MPI_MPICH)  // handles are those of Fortran
inline int from_fortran(MPI_Fint value, int) {
  return value;
}
#else
inline MPI_Comm from_fortran(MPI_Fint value, MPI_Comm) {
  return mpi().Comm_f2c(value);
}
inline MPI_Request from_fortran(MPI_Fint value, MPI_Request) {
  return mpi().Request_f2c(value);
}
inline MPI_Win from_fortran(MPI_Fint value, MPI_Win) {
  return mpi().Win_f2c(value);
}
inline MPI_Message from_fortran(MPI_Fint value, MPI_Message) {
  return mpi().Message_f2c(value);
}
inline MPI_Datatype from_fortran(MPI_Fint value, MPI_Datatype) {
  return mpi().Type_f2c(value);
}
#endif

// The words of a Fortran call as those of the C call.
void words_from_fortran(const char* kinds, const Word* from, Word* to);
// Whether this address stands for MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE in a Fortran call.
bool fortran_ignores_status(const void* address);

struct Words {
  const Descriptor& d;
  Word* words;
  Language language;

  bool has(int8_t position) const { return position >= 0; }
  int integer(int8_t position, int otherwise = 0) const { return position < 0 ? otherwise : int(words[position]); }
  void* pointer(int8_t position) const { return position < 0 ? nullptr : reinterpret_cast<void*>(words[position]); }
  template <class Handle>
  Handle handle(int8_t position) const {
    return handle_of<Handle>(words[position]);
  }

  // Element i of an array of handles; of a single handle, element 0.
  template <class Handle>
  Handle handle_at(int8_t position, size_t i = 0) const {
    const void* array = pointer(position);
#if !defined(STRETTO_MPI_ABI)
    if (language == Language::fortran) return from_fortran(static_cast<const MPI_Fint*>(array)[i], Handle{});
#endif
    return static_cast<const Handle*>(array)[i];
  }
  const void* address_at(int8_t position, size_t i) const {
    const size_t bytes = language == Language::fortran ? sizeof(MPI_Fint) : sizeof(MPI_Request);
    return static_cast<const char*>(pointer(position)) + i * bytes;
  }

  // A count, or element i of an array of counts; never negative.
  uint64_t count(int8_t position) const {
    if (position < 0) return 1;
    const int64_t value = d.wide ? int64_t(words[position]) : int64_t(int(words[position]));
    return value > 0 ? uint64_t(value) : 0;
  }
  uint64_t count_at(int8_t position, size_t i) const {
    const int64_t value =
        d.wide ? static_cast<const MPI_Count*>(pointer(position))[i] : static_cast<const int*>(pointer(position))[i];
    return value > 0 ? uint64_t(value) : 0;
  }
  // An int that the call wrote, as an index from 0; MPI_UNDEFINED stays.
  int index_at(int8_t position, size_t i = 0) const {
    const int value = static_cast<const int*>(pointer(position))[i];
    return language == Language::fortran && value != MPI_UNDEFINED ? value - 1 : value;
  }
  int written(int8_t position) const { return *static_cast<const int*>(pointer(position)); }

  bool ignores_status() const {
    void* status = pointer(d.status);
    if (language == Language::c) return status == MPI_STATUS_IGNORE;
    return status == nullptr || fortran_ignores_status(status);
  }
};

}  // namespace stretto::shim::profile
