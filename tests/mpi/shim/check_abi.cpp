// Prints what one side believes about an MPI ABI: constants, layouts, predefined handles and the machine types of every
// function. Compiled twice: with REAL_MPI against the real mpi.h, and without against Stretto's own headers. test_shim.py
// compares the two outputs line by line.
//
// Handles of an MPI whose handles are addresses are printed by the name of the symbol at that address.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#ifdef REAL_MPI
#include <mpi.h>
#else
#include "shim/mpi.hpp"
#include "shim/process.hpp"
#endif

namespace {

// A type as a calling convention sees it.
template <class T>
void print_type() {
  if constexpr (std::is_void_v<T>) {
    printf(" void");
  } else if constexpr (std::is_pointer_v<T>) {
    printf(" pointer%zu", sizeof(T));
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    printf(" integer%zu", sizeof(T));
  }
}

template <class T>
struct Signature;

template <class Result, class... Arguments>
struct Signature<Result(Arguments...)> {
  static void print() {
    print_type<Result>();
    (print_type<Arguments>(), ...);
  }
};

template <class Result, class... Arguments>
struct Signature<Result(Arguments..., ...)> : Signature<Result(Arguments...)> {};

template <class Function>
void print_function(const char* name) {
  printf("function %s:", name);
  Signature<Function>::print();
  printf("\n");
}

#ifdef REAL_MPI
#define FUNCTION_TYPE(name) decltype(PMPI_##name)
#define HANDLE(name) print_handle(#name, (uintptr_t)(name))
#else
template <class T>
struct TypeOf;  // the function type of one of mpi()'s functions
template <class F, uint32_t index>
struct TypeOf<const stretto::shim::Function<F, index> > {
  using type = F;
};
#define FUNCTION_TYPE(name) TypeOf<decltype(stretto::shim::Functions::name)>::type
#define HANDLE(name) print_handle(#name, stretto::shim::predefined_value(#name))
#endif

void print_handle(const char* name, uintptr_t value) {
#if defined(STRETTO_MPI_OMPI)
  printf("handle %s: %s\n", name, value ? reinterpret_cast<const char*>(value) : "nothing");
#elif defined(HANDLES_ARE_ADDRESSES)
  Dl_info info{};
  const bool named = dladdr(reinterpret_cast<void*>(value), &info) && info.dli_saddr == reinterpret_cast<void*>(value);
  printf("handle %s: %s\n", name, named ? info.dli_sname : "nothing");
#else
  printf("handle %s: %#x\n", name, unsigned(value));
#endif
}

#define CONSTANT(name) printf("constant %s: %lld\n", #name, (long long)(name))
#define ADDRESS(name) printf("address %s: %lld\n", #name, (long long)(intptr_t)(name))
#define SIZE(type) printf("size %s: %zu\n", #type, sizeof(type))

void print_layouts() {
  SIZE(MPI_Comm), SIZE(MPI_Datatype), SIZE(MPI_Errhandler), SIZE(MPI_File), SIZE(MPI_Group), SIZE(MPI_Info), SIZE(MPI_Message);
  SIZE(MPI_Op), SIZE(MPI_Request), SIZE(MPI_Win), SIZE(MPI_Aint), SIZE(MPI_Count), SIZE(MPI_Offset), SIZE(MPI_Status);
  printf("status: %zu %zu %zu\n", offsetof(MPI_Status, MPI_SOURCE), offsetof(MPI_Status, MPI_TAG),
         offsetof(MPI_Status, MPI_ERROR));
}

void print_constants() {
  ADDRESS(MPI_BOTTOM), ADDRESS(MPI_IN_PLACE), ADDRESS(MPI_STATUS_IGNORE), ADDRESS(MPI_STATUSES_IGNORE),
      ADDRESS(MPI_ERRCODES_IGNORE);
  CONSTANT(MPI_SUCCESS), CONSTANT(MPI_UNDEFINED), CONSTANT(MPI_ANY_SOURCE), CONSTANT(MPI_ANY_TAG), CONSTANT(MPI_PROC_NULL);
  CONSTANT(MPI_ROOT), CONSTANT(MPI_KEYVAL_INVALID), CONSTANT(MPI_MAX_LIBRARY_VERSION_STRING), CONSTANT(MPI_MAX_PROCESSOR_NAME);
  CONSTANT(MPI_MAX_ERROR_STRING), CONSTANT(MPI_THREAD_SINGLE), CONSTANT(MPI_THREAD_FUNNELED), CONSTANT(MPI_THREAD_SERIALIZED);
  CONSTANT(MPI_THREAD_MULTIPLE), CONSTANT(MPI_IDENT), CONSTANT(MPI_CONGRUENT), CONSTANT(MPI_SIMILAR), CONSTANT(MPI_UNEQUAL);
  CONSTANT(MPI_COMM_TYPE_SHARED), CONSTANT(MPI_COMBINER_NAMED), CONSTANT(MPI_TAG_UB);
  CONSTANT(MPI_CART), CONSTANT(MPI_GRAPH), CONSTANT(MPI_DIST_GRAPH), CONSTANT(MPI_ERR_PENDING);
  CONSTANT(MPI_ERR_BUFFER), CONSTANT(MPI_ERR_COUNT), CONSTANT(MPI_ERR_TYPE), CONSTANT(MPI_ERR_COMM), CONSTANT(MPI_ERR_ROOT);
  CONSTANT(MPI_ERR_OP), CONSTANT(MPI_ERR_ARG), CONSTANT(MPI_ERR_TRUNCATE), CONSTANT(MPI_ERR_OTHER), CONSTANT(MPI_ERR_INTERN);
  CONSTANT(MPI_ERR_NO_MEM), CONSTANT(MPI_ERR_UNSUPPORTED_OPERATION);
}

void print_handles() {
#include "abi_handles.inc"
}

void print_functions() {
#define PRINT(name) print_function<FUNCTION_TYPE(name)>(#name);
#define ENTRY_SINCE_3_1(name) PRINT(name)
#ifdef WITHOUT_MPI_4
#define ENTRY_SINCE_4_0(name)
#else
#define ENTRY_SINCE_4_0(name) PRINT(name)
#endif
#ifdef WITHOUT_MPI_4_1
#define ENTRY_SINCE_4_1(name)
#else
#define ENTRY_SINCE_4_1(name) PRINT(name)
#endif
#ifdef WITHOUT_LARGE_COUNTS
#define ENTRY_LARGE(name)
#else
#define ENTRY_LARGE(name) PRINT(name)
#endif
#ifdef WITHOUT_FORTRAN_CONVERSION
#define ENTRY_FORTRAN(name)
#else
#define ENTRY_FORTRAN(name) PRINT(name)
#endif
#include "abi_list.inc"
}

}  // namespace

#ifdef STRETTO_MPI_OMPI
// Handles by symbol name: here a symbol's "address" is its name.
namespace stretto::shim {
const Library& library() {
  static Library none;
  return none;
}
void* Library::find_data(const char* symbol) const {
  return const_cast<char*>(symbol);
}
}  // namespace stretto::shim
#endif

int main() {
#ifdef REAL_MPI
  MPI_Init(nullptr, nullptr);
#endif
  print_layouts();
  print_constants();
  print_handles();
  print_functions();
#ifdef REAL_MPI
  MPI_Finalize();
#endif
}
