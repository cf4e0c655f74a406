// The MPI application binary interface this library is built for: handle types, the status layout and constants, written
// down here because a build of Stretto needs no MPI. tests/mpi/shim/check_abi compares them with the real headers.
//
// Predefined handles are not constants in every ABI: predefined() finds them by their MPI name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(STRETTO_MPI_OMPI)
#include "shim/ompi/abi.hpp"
#elif defined(STRETTO_MPI_MPICH)
#include "shim/mpich/abi.hpp"
#elif defined(STRETTO_MPI_ABI)
#include "shim/abi/abi.hpp"
#else
#error "define one of STRETTO_MPI_OMPI, STRETTO_MPI_MPICH, STRETTO_MPI_ABI"
#endif

// The same in every ABI.
enum : int {
  MPI_SUCCESS = 0,
  MPI_UNDEFINED = -32766,
};

using MPI_User_function = void(void*, void*, int*, MPI_Datatype*);
using MPI_User_function_c = void(void*, void*, MPI_Count*, MPI_Datatype*);
using MPI_Comm_copy_attr_function = int(MPI_Comm, int, void*, void*, void*, int*);
using MPI_Comm_delete_attr_function = int(MPI_Comm, int, void*, void*);
using MPI_Type_copy_attr_function = int(MPI_Datatype, int, void*, void*, void*, int*);
using MPI_Type_delete_attr_function = int(MPI_Datatype, int, void*, void*);
using MPI_Grequest_query_function = int(void*, MPI_Status*);
using MPI_Grequest_free_function = int(void*);
using MPI_Grequest_cancel_function = int(void*, int);
using MPI_Comm_errhandler_function = void(MPI_Comm*, int*, ...);

namespace stretto::shim {

// The value of a predefined handle ("MPI_INT", "MPI_COMM_WORLD", "MPI_SUM", ...); 0 when the loaded MPI has none of that name.
uintptr_t predefined_value(const char* mpi_name);

// The size of a predefined datatype where its handle tells.
bool size_in_handle(uintptr_t value, size_t* size);

// Whether an operation is MPI's own, one that Stretto does not know or that reduces nothing among them; else the program made it.
bool is_own_op(uintptr_t value);

// A handle as a number.
template <class Handle>
uintptr_t key_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<uintptr_t>(handle);
  } else {
    return uint32_t(handle);
  }
}

template <class Handle>
bool predefined(const char* mpi_name, Handle* handle) {
  const uintptr_t value = predefined_value(mpi_name);
  if constexpr (std::is_pointer_v<Handle>) {
    *handle = reinterpret_cast<Handle>(value);
  } else {
    *handle = Handle(value);
  }
  return value != 0;
}

// 0 when the loaded MPI has none of that name.
template <class Handle>
Handle named(const char* mpi_name) {
  Handle handle{};
  predefined(mpi_name, &handle);
  return handle;
}

// Null when the loaded MPI lacks it; found once.
MPI_Comm comm_world();
MPI_Comm comm_self();
MPI_Comm comm_null();
MPI_Datatype byte_type();

// Whether this process alone is in it, as far as that can be told without MPI: MPI_COMM_SELF, and the world of a single rank.
bool has_one_process(MPI_Comm comm);

}  // namespace stretto::shim
