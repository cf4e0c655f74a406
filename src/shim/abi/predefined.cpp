// Predefined handles of the standard ABI (MPI 5.0, appendix A).
#include <string.h>

#include "shim/abi.hpp"

namespace stretto::shim {

namespace {

struct Row {
  const char* name;
  uint16_t value;
};

constexpr Row rows[] = {
    {"MPI_OP_NULL", 0x020},
    {"MPI_SUM", 0x021},
    {"MPI_MIN", 0x022},
    {"MPI_MAX", 0x023},
    {"MPI_PROD", 0x024},
    {"MPI_BAND", 0x028},
    {"MPI_BOR", 0x029},
    {"MPI_BXOR", 0x02a},
    {"MPI_LAND", 0x030},
    {"MPI_LOR", 0x031},
    {"MPI_LXOR", 0x032},
    {"MPI_MINLOC", 0x038},
    {"MPI_MAXLOC", 0x039},
    {"MPI_REPLACE", 0x03c},
    {"MPI_NO_OP", 0x03d},
    {"MPI_COMM_NULL", 0x100},
    {"MPI_REQUEST_NULL", 0x180},
    {"MPI_MESSAGE_NO_PROC", 0x129},
    {"MPI_WIN_NULL", 0x110},
    {"MPI_COMM_WORLD", 0x101},
    {"MPI_COMM_SELF", 0x102},
    {"MPI_ERRHANDLER_NULL", 0x140},
    {"MPI_ERRORS_ARE_FATAL", 0x141},
    {"MPI_ERRORS_ABORT", 0x142},
    {"MPI_ERRORS_RETURN", 0x143},
    {"MPI_DATATYPE_NULL", 0x200},
    {"MPI_AINT", 0x201},
    {"MPI_COUNT", 0x202},
    {"MPI_OFFSET", 0x203},
    {"MPI_PACKED", 0x207},
    {"MPI_SHORT", 0x208},
    {"MPI_INT", 0x209},
    {"MPI_LONG", 0x20a},
    {"MPI_LONG_LONG", 0x20b},
    {"MPI_UNSIGNED_SHORT", 0x20c},
    {"MPI_UNSIGNED", 0x20d},
    {"MPI_UNSIGNED_LONG", 0x20e},
    {"MPI_UNSIGNED_LONG_LONG", 0x20f},
    {"MPI_FLOAT", 0x210},
    {"MPI_C_FLOAT_COMPLEX", 0x212},
    {"MPI_CXX_FLOAT_COMPLEX", 0x213},
    {"MPI_DOUBLE", 0x214},
    {"MPI_C_DOUBLE_COMPLEX", 0x216},
    {"MPI_CXX_DOUBLE_COMPLEX", 0x217},
    {"MPI_LOGICAL", 0x218},
    {"MPI_INTEGER", 0x219},
    {"MPI_REAL", 0x21a},
    {"MPI_COMPLEX", 0x21b},
    {"MPI_DOUBLE_PRECISION", 0x21c},
    {"MPI_DOUBLE_COMPLEX", 0x21d},
    {"MPI_CHARACTER", 0x21e},
    {"MPI_LONG_DOUBLE", 0x220},
    {"MPI_C_LONG_DOUBLE_COMPLEX", 0x224},
    {"MPI_CXX_LONG_DOUBLE_COMPLEX", 0x225},
    {"MPI_FLOAT_INT", 0x228},
    {"MPI_DOUBLE_INT", 0x229},
    {"MPI_LONG_INT", 0x22a},
    {"MPI_2INT", 0x22b},
    {"MPI_SHORT_INT", 0x22c},
    {"MPI_LONG_DOUBLE_INT", 0x22d},
    {"MPI_2REAL", 0x230},
    {"MPI_2DOUBLE_PRECISION", 0x231},
    {"MPI_2INTEGER", 0x232},
    {"MPI_C_BOOL", 0x238},
    {"MPI_CXX_BOOL", 0x239},
    {"MPI_WCHAR", 0x23c},
    {"MPI_INT8_T", 0x240},
    {"MPI_UINT8_T", 0x241},
    {"MPI_CHAR", 0x243},
    {"MPI_SIGNED_CHAR", 0x244},
    {"MPI_UNSIGNED_CHAR", 0x245},
    {"MPI_BYTE", 0x247},
    {"MPI_INT16_T", 0x248},
    {"MPI_UINT16_T", 0x249},
    {"MPI_INT32_T", 0x250},
    {"MPI_UINT32_T", 0x251},
    {"MPI_INT64_T", 0x258},
    {"MPI_UINT64_T", 0x259},
    {"MPI_LOGICAL1", 0x2c0},
    {"MPI_INTEGER1", 0x2c1},
    {"MPI_LOGICAL2", 0x2c8},
    {"MPI_INTEGER2", 0x2c9},
    {"MPI_REAL2", 0x2ca},
    {"MPI_LOGICAL4", 0x2d0},
    {"MPI_INTEGER4", 0x2d1},
    {"MPI_REAL4", 0x2d2},
    {"MPI_COMPLEX4", 0x2d3},
    {"MPI_LOGICAL8", 0x2d8},
    {"MPI_INTEGER8", 0x2d9},
    {"MPI_REAL8", 0x2da},
    {"MPI_COMPLEX8", 0x2db},
    {"MPI_LOGICAL16", 0x2e0},
    {"MPI_INTEGER16", 0x2e1},
    {"MPI_REAL16", 0x2e2},
    {"MPI_COMPLEX16", 0x2e3},
    {"MPI_COMPLEX32", 0x2eb},
    {"MPI_LONG_LONG_INT", 0x20b},
    {"MPI_C_COMPLEX", 0x212},
};

}  // namespace

uintptr_t predefined_value(const char* mpi_name) {
  for (const Row& row : rows) {
    if (strcmp(row.name, mpi_name) == 0) return row.value;
  }
  return 0;
}

bool size_in_handle(uintptr_t, size_t*) {
  return false;
}  // some do, MPI_INTEGER and the like do not: the library knows all

// What the standard names and keeps for itself is below this.
bool is_own_op(uintptr_t value) {
  return value < 0x1000;
}

}  // namespace stretto::shim
