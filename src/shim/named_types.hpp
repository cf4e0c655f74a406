// The predefined datatypes and operations of MPI, by name, and what they mean to the kernels.
#pragma once
#include "kernels/kernels.hpp"

namespace stretto::shim {

// How elements of a type are represented, up to their size, which the MPI library tells.
enum class Family : uint8_t {
  signed_integer,
  unsigned_integer,
  real,
  real16,
  bfloat,
  long_double,
  complex,
  long_double_complex,
  boolean,
  logical,
  byte,
  moved,
  float_int,
  double_int,
  long_int,
  int_int,
  short_int,
  long_double_int,
  real_real,
  double_double,
};

struct NamedType {
  const char* name;
  Family family;
};

struct NamedOp {
  const char* name;
  kernels::Op op;
};

// opaque where no kernel type has this representation.
kernels::Type kernel_type(Family family, size_t size);

inline constexpr NamedType named_types[] = {
    // C and C++
    {"MPI_SIGNED_CHAR", Family::signed_integer},
    {"MPI_SHORT", Family::signed_integer},
    {"MPI_INT", Family::signed_integer},
    {"MPI_LONG", Family::signed_integer},
    {"MPI_LONG_LONG", Family::signed_integer},
    {"MPI_LONG_LONG_INT", Family::signed_integer},
    {"MPI_INT8_T", Family::signed_integer},
    {"MPI_INT16_T", Family::signed_integer},
    {"MPI_INT32_T", Family::signed_integer},
    {"MPI_INT64_T", Family::signed_integer},
    {"MPI_AINT", Family::signed_integer},
    {"MPI_OFFSET", Family::signed_integer},
    {"MPI_COUNT", Family::signed_integer},
    {"MPI_UNSIGNED_CHAR", Family::unsigned_integer},
    {"MPI_UNSIGNED_SHORT", Family::unsigned_integer},
    {"MPI_UNSIGNED", Family::unsigned_integer},
    {"MPI_UNSIGNED_LONG", Family::unsigned_integer},
    {"MPI_UNSIGNED_LONG_LONG", Family::unsigned_integer},
    {"MPI_UINT8_T", Family::unsigned_integer},
    {"MPI_UINT16_T", Family::unsigned_integer},
    {"MPI_UINT32_T", Family::unsigned_integer},
    {"MPI_UINT64_T", Family::unsigned_integer},
    {"MPI_FLOAT", Family::real},
    {"MPI_DOUBLE", Family::real},
    {"MPI_LONG_DOUBLE", Family::long_double},
    {"MPIX_C_FLOAT16", Family::real},
    {"MPIX_BFLOAT16", Family::bfloat},
    {"MPI_C_COMPLEX", Family::complex},
    {"MPI_C_FLOAT_COMPLEX", Family::complex},
    {"MPI_C_DOUBLE_COMPLEX", Family::complex},
    {"MPI_C_LONG_DOUBLE_COMPLEX", Family::long_double_complex},
    {"MPI_CXX_COMPLEX", Family::complex},
    {"MPI_CXX_FLOAT_COMPLEX", Family::complex},
    {"MPI_CXX_DOUBLE_COMPLEX", Family::complex},
    {"MPI_CXX_LONG_DOUBLE_COMPLEX", Family::long_double_complex},
    {"MPI_C_BOOL", Family::boolean},
    {"MPI_CXX_BOOL", Family::boolean},
    {"MPI_BYTE", Family::byte},
    {"MPI_PACKED", Family::moved},
    {"MPI_CHAR", Family::moved},
    {"MPI_WCHAR", Family::moved},
    {"MPI_FLOAT_INT", Family::float_int},
    {"MPI_DOUBLE_INT", Family::double_int},
    {"MPI_LONG_INT", Family::long_int},
    {"MPI_2INT", Family::int_int},
    {"MPI_SHORT_INT", Family::short_int},
    {"MPI_LONG_DOUBLE_INT", Family::long_double_int},
    // Fortran
    {"MPI_INTEGER", Family::signed_integer},
    {"MPI_INTEGER1", Family::signed_integer},
    {"MPI_INTEGER2", Family::signed_integer},
    {"MPI_INTEGER4", Family::signed_integer},
    {"MPI_INTEGER8", Family::signed_integer},
    {"MPI_INTEGER16", Family::signed_integer},
    {"MPI_REAL", Family::real},
    {"MPI_DOUBLE_PRECISION", Family::real},
    {"MPI_REAL2", Family::real},
    {"MPI_REAL4", Family::real},
    {"MPI_REAL8", Family::real},
    {"MPI_REAL16", Family::real16},
    {"MPI_COMPLEX", Family::complex},
    {"MPI_DOUBLE_COMPLEX", Family::complex},
    {"MPI_COMPLEX4", Family::complex},
    {"MPI_COMPLEX8", Family::complex},
    {"MPI_COMPLEX16", Family::complex},
    {"MPI_COMPLEX32", Family::complex},
    {"MPI_LOGICAL", Family::logical},
    {"MPI_LOGICAL1", Family::logical},
    {"MPI_LOGICAL2", Family::logical},
    {"MPI_LOGICAL4", Family::logical},
    {"MPI_LOGICAL8", Family::logical},
    {"MPI_LOGICAL16", Family::logical},
    {"MPI_CHARACTER", Family::moved},
    {"MPI_2INTEGER", Family::int_int},
    {"MPI_2REAL", Family::real_real},
    {"MPI_2DOUBLE_PRECISION", Family::double_double},
    {"MPI_2COMPLEX", Family::moved},
    {"MPI_2DOUBLE_COMPLEX", Family::moved},
};

inline constexpr NamedOp named_ops[] = {
    {"MPI_SUM", kernels::Op::sum},   {"MPI_PROD", kernels::Op::prod},     {"MPI_MIN", kernels::Op::min},
    {"MPI_MAX", kernels::Op::max},   {"MPI_LAND", kernels::Op::land},     {"MPI_LOR", kernels::Op::lor},
    {"MPI_LXOR", kernels::Op::lxor}, {"MPI_BAND", kernels::Op::band},     {"MPI_BOR", kernels::Op::bor},
    {"MPI_BXOR", kernels::Op::bxor}, {"MPI_MINLOC", kernels::Op::minloc}, {"MPI_MAXLOC", kernels::Op::maxloc},
};

}  // namespace stretto::shim
