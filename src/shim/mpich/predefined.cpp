// Predefined handles of the MPICH ABI.
#include <string.h>

#include "shim/abi.hpp"

namespace stretto::shim {

namespace {

struct Row {
  const char* name;
  uint32_t value;
};

constexpr Row rows[] = {
    {"MPI_COMM_NULL", 0x04000000},
    {"MPI_REQUEST_NULL", 0x2c000000},
    {"MPI_MESSAGE_NO_PROC", 0x6c000000},
    {"MPI_WIN_NULL", 0x20000000},
    {"MPI_OP_NULL", 0x18000000},
    {"MPI_DATATYPE_NULL", 0x0c000000},
    {"MPI_ERRHANDLER_NULL", 0x14000000},
    {"MPI_CHAR", 0x4c000101},
    {"MPI_UNSIGNED_CHAR", 0x4c000102},
    {"MPI_SHORT", 0x4c000203},
    {"MPI_UNSIGNED_SHORT", 0x4c000204},
    {"MPI_INT", 0x4c000405},
    {"MPI_UNSIGNED", 0x4c000406},
    {"MPI_LONG", 0x4c000807},
    {"MPI_UNSIGNED_LONG", 0x4c000808},
    {"MPI_LONG_LONG_INT", 0x4c000809},
    {"MPI_FLOAT", 0x4c00040a},
    {"MPI_DOUBLE", 0x4c00080b},
    {"MPI_LONG_DOUBLE", 0x4c00100c},
    {"MPI_BYTE", 0x4c00010d},
    {"MPI_WCHAR", 0x4c00040e},
    {"MPI_PACKED", 0x4c00010f},
    {"MPI_FLOAT_INT", 0x8c000000},
    {"MPI_DOUBLE_INT", 0x8c000001},
    {"MPI_LONG_INT", 0x8c000002},
    {"MPI_SHORT_INT", 0x8c000003},
    {"MPI_2INT", 0x4c000816},
    {"MPI_LONG_DOUBLE_INT", 0x8c000004},
    {"MPI_SIGNED_CHAR", 0x4c000118},
    {"MPI_UNSIGNED_LONG_LONG", 0x4c000819},
    {"MPI_CHARACTER", 0x4c00011a},
    {"MPI_INTEGER", 0x4c00041b},
    {"MPI_REAL", 0x4c00041c},
    {"MPI_LOGICAL", 0x4c00041d},
    {"MPI_COMPLEX", 0x4c00081e},
    {"MPI_DOUBLE_PRECISION", 0x4c00081f},
    {"MPI_2INTEGER", 0x4c000820},
    {"MPI_2REAL", 0x4c000821},
    {"MPI_DOUBLE_COMPLEX", 0x4c001022},
    {"MPI_2DOUBLE_PRECISION", 0x4c001023},
    {"MPI_REAL2", 0x4c000226},
    {"MPI_REAL4", 0x4c000427},
    {"MPI_COMPLEX8", 0x4c000828},
    {"MPI_REAL8", 0x4c000829},
    {"MPI_COMPLEX16", 0x4c00102a},
    {"MPI_REAL16", 0x4c00102b},
    {"MPI_COMPLEX32", 0x4c00202c},
    {"MPI_INTEGER1", 0x4c00012d},
    {"MPI_COMPLEX4", 0x4c00042e},
    {"MPI_INTEGER2", 0x4c00022f},
    {"MPI_INTEGER4", 0x4c000430},
    {"MPI_INTEGER8", 0x4c000831},
    {"MPI_INTEGER16", 0x4c001032},
    {"MPI_CXX_BOOL", 0x4c000133},
    {"MPI_CXX_FLOAT_COMPLEX", 0x4c000834},
    {"MPI_CXX_DOUBLE_COMPLEX", 0x4c001035},
    {"MPI_CXX_LONG_DOUBLE_COMPLEX", 0x4c002036},
    {"MPI_INT8_T", 0x4c000137},
    {"MPI_INT16_T", 0x4c000238},
    {"MPI_INT32_T", 0x4c000439},
    {"MPI_INT64_T", 0x4c00083a},
    {"MPI_UINT8_T", 0x4c00013b},
    {"MPI_UINT16_T", 0x4c00023c},
    {"MPI_UINT32_T", 0x4c00043d},
    {"MPI_UINT64_T", 0x4c00083e},
    {"MPI_C_BOOL", 0x4c00013f},
    {"MPI_C_FLOAT_COMPLEX", 0x4c000840},
    {"MPI_C_DOUBLE_COMPLEX", 0x4c001041},
    {"MPI_C_LONG_DOUBLE_COMPLEX", 0x4c002042},
    {"MPI_AINT", 0x4c000843},
    {"MPI_OFFSET", 0x4c000844},
    {"MPI_COUNT", 0x4c000845},
    {"MPIX_C_FLOAT16", 0x4c000246},
    {"MPI_LOGICAL1", 0x4c000147},
    {"MPI_LOGICAL2", 0x4c000248},
    {"MPI_LOGICAL4", 0x4c000449},
    {"MPI_LOGICAL8", 0x4c00084a},
    {"MPI_LOGICAL16", 0x4c00104b},
    {"MPIX_BFLOAT16", 0x4c00024c},
    {"MPI_COMM_WORLD", 0x44000000},
    {"MPI_COMM_SELF", 0x44000001},
    {"MPI_MAX", 0x58000001},
    {"MPI_MIN", 0x58000002},
    {"MPI_SUM", 0x58000003},
    {"MPI_PROD", 0x58000004},
    {"MPI_LAND", 0x58000005},
    {"MPI_BAND", 0x58000006},
    {"MPI_LOR", 0x58000007},
    {"MPI_BOR", 0x58000008},
    {"MPI_LXOR", 0x58000009},
    {"MPI_BXOR", 0x5800000a},
    {"MPI_MINLOC", 0x5800000b},
    {"MPI_MAXLOC", 0x5800000c},
    {"MPI_REPLACE", 0x5800000d},
    {"MPI_NO_OP", 0x5800000e},
    {"MPIX_EQUAL", 0x5800000f},
    {"MPI_ERRORS_ARE_FATAL", 0x54000000},
    {"MPI_ERRORS_RETURN", 0x54000001},
    {"MPI_ERRORS_ABORT", 0x54000003},
    {"MPI_LONG_LONG", 0x4c000809},
    {"MPI_C_COMPLEX", 0x4c000840},
};

}  // namespace

uintptr_t predefined_value(const char* mpi_name) {
  for (const Row& row : rows) {
    if (strcmp(row.name, mpi_name) == 0) return row.value;
  }
  return 0;
}

// MPICH 4.0 ends the program when it is asked for a type that came later, so types of one component are not asked for.
bool size_in_handle(uintptr_t value, size_t* size) {
  if (value >> 24u != 0x4cu) return false;
  *size = value >> 8u & 0xffu;
  return true;
}

// The upper two bits: nothing, the library's own, or made.
bool is_own_op(uintptr_t value) {
  return value >> 30u < 2;
}

}  // namespace stretto::shim
