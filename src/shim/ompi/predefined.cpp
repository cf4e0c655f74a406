// Predefined handles of Open MPI: the addresses of these symbols of libmpi.
#include <string.h>

#include <initializer_list>

#include "shim/abi.hpp"
#include "shim/process.hpp"

namespace stretto::shim {

namespace {

struct Row {
  const char* name;
  const char* symbol;
};

constexpr Row rows[] = {
    {"MPI_COMM_NULL", "ompi_mpi_comm_null"},
    {"MPI_REQUEST_NULL", "ompi_request_null"},
    {"MPI_MESSAGE_NO_PROC", "ompi_message_no_proc"},
    {"MPI_WIN_NULL", "ompi_mpi_win_null"},
    {"MPI_OP_NULL", "ompi_mpi_op_null"},
    {"MPI_ERRHANDLER_NULL", "ompi_mpi_errhandler_null"},
    {"MPI_COMM_WORLD", "ompi_mpi_comm_world"},
    {"MPI_COMM_SELF", "ompi_mpi_comm_self"},
    {"MPI_MAX", "ompi_mpi_op_max"},
    {"MPI_MIN", "ompi_mpi_op_min"},
    {"MPI_SUM", "ompi_mpi_op_sum"},
    {"MPI_PROD", "ompi_mpi_op_prod"},
    {"MPI_LAND", "ompi_mpi_op_land"},
    {"MPI_BAND", "ompi_mpi_op_band"},
    {"MPI_LOR", "ompi_mpi_op_lor"},
    {"MPI_BOR", "ompi_mpi_op_bor"},
    {"MPI_LXOR", "ompi_mpi_op_lxor"},
    {"MPI_BXOR", "ompi_mpi_op_bxor"},
    {"MPI_MAXLOC", "ompi_mpi_op_maxloc"},
    {"MPI_MINLOC", "ompi_mpi_op_minloc"},
    {"MPI_REPLACE", "ompi_mpi_op_replace"},
    {"MPI_NO_OP", "ompi_mpi_op_no_op"},
    {"MPI_DATATYPE_NULL", "ompi_mpi_datatype_null"},
    {"MPI_BYTE", "ompi_mpi_byte"},
    {"MPI_PACKED", "ompi_mpi_packed"},
    {"MPI_CHAR", "ompi_mpi_char"},
    {"MPI_SHORT", "ompi_mpi_short"},
    {"MPI_INT", "ompi_mpi_int"},
    {"MPI_LONG", "ompi_mpi_long"},
    {"MPI_FLOAT", "ompi_mpi_float"},
    {"MPI_DOUBLE", "ompi_mpi_double"},
    {"MPI_LONG_DOUBLE", "ompi_mpi_long_double"},
    {"MPI_UNSIGNED_CHAR", "ompi_mpi_unsigned_char"},
    {"MPI_SIGNED_CHAR", "ompi_mpi_signed_char"},
    {"MPI_UNSIGNED_SHORT", "ompi_mpi_unsigned_short"},
    {"MPI_UNSIGNED_LONG", "ompi_mpi_unsigned_long"},
    {"MPI_UNSIGNED", "ompi_mpi_unsigned"},
    {"MPI_FLOAT_INT", "ompi_mpi_float_int"},
    {"MPI_DOUBLE_INT", "ompi_mpi_double_int"},
    {"MPI_LONG_DOUBLE_INT", "ompi_mpi_longdbl_int"},
    {"MPI_LONG_INT", "ompi_mpi_long_int"},
    {"MPI_SHORT_INT", "ompi_mpi_short_int"},
    {"MPI_2INT", "ompi_mpi_2int"},
    {"MPI_WCHAR", "ompi_mpi_wchar"},
    {"MPI_LONG_LONG_INT", "ompi_mpi_long_long_int"},
    {"MPI_LONG_LONG", "ompi_mpi_long_long_int"},
    {"MPI_UNSIGNED_LONG_LONG", "ompi_mpi_unsigned_long_long"},
    {"MPI_2COMPLEX", "ompi_mpi_2cplex"},
    {"MPI_2DOUBLE_COMPLEX", "ompi_mpi_2dblcplex"},
    {"MPI_CHARACTER", "ompi_mpi_character"},
    {"MPI_LOGICAL", "ompi_mpi_logical"},
    {"MPI_LOGICAL1", "ompi_mpi_logical1"},
    {"MPI_LOGICAL2", "ompi_mpi_logical2"},
    {"MPI_LOGICAL4", "ompi_mpi_logical4"},
    {"MPI_LOGICAL8", "ompi_mpi_logical8"},
    {"MPI_INTEGER", "ompi_mpi_integer"},
    {"MPI_INTEGER1", "ompi_mpi_integer1"},
    {"MPI_INTEGER2", "ompi_mpi_integer2"},
    {"MPI_INTEGER4", "ompi_mpi_integer4"},
    {"MPI_INTEGER8", "ompi_mpi_integer8"},
    {"MPI_INTEGER16", "ompi_mpi_integer16"},
    {"MPI_REAL", "ompi_mpi_real"},
    {"MPI_REAL2", "ompi_mpi_real2"},
    {"MPI_REAL4", "ompi_mpi_real4"},
    {"MPI_REAL8", "ompi_mpi_real8"},
    {"MPI_REAL16", "ompi_mpi_real16"},
    {"MPI_DOUBLE_PRECISION", "ompi_mpi_dblprec"},
    {"MPI_COMPLEX", "ompi_mpi_cplex"},
    {"MPI_COMPLEX4", "ompi_mpi_complex4"},
    {"MPI_COMPLEX8", "ompi_mpi_complex8"},
    {"MPI_COMPLEX16", "ompi_mpi_complex16"},
    {"MPI_COMPLEX32", "ompi_mpi_complex32"},
    {"MPI_DOUBLE_COMPLEX", "ompi_mpi_dblcplex"},
    {"MPI_2REAL", "ompi_mpi_2real"},
    {"MPI_2DOUBLE_PRECISION", "ompi_mpi_2dblprec"},
    {"MPI_2INTEGER", "ompi_mpi_2integer"},
    {"MPI_INT8_T", "ompi_mpi_int8_t"},
    {"MPI_UINT8_T", "ompi_mpi_uint8_t"},
    {"MPI_INT16_T", "ompi_mpi_int16_t"},
    {"MPI_UINT16_T", "ompi_mpi_uint16_t"},
    {"MPI_INT32_T", "ompi_mpi_int32_t"},
    {"MPI_UINT32_T", "ompi_mpi_uint32_t"},
    {"MPI_INT64_T", "ompi_mpi_int64_t"},
    {"MPI_UINT64_T", "ompi_mpi_uint64_t"},
    {"MPI_AINT", "ompi_mpi_aint"},
    {"MPI_OFFSET", "ompi_mpi_offset"},
    {"MPI_C_BOOL", "ompi_mpi_c_bool"},
    {"MPI_C_COMPLEX", "ompi_mpi_c_float_complex"},
    {"MPI_C_FLOAT_COMPLEX", "ompi_mpi_c_float_complex"},
    {"MPI_C_DOUBLE_COMPLEX", "ompi_mpi_c_double_complex"},
    {"MPI_C_LONG_DOUBLE_COMPLEX", "ompi_mpi_c_long_double_complex"},
    {"MPI_CXX_BOOL", "ompi_mpi_cxx_bool"},
    {"MPI_CXX_COMPLEX", "ompi_mpi_cxx_cplex"},
    {"MPI_CXX_FLOAT_COMPLEX", "ompi_mpi_cxx_cplex"},
    {"MPI_CXX_DOUBLE_COMPLEX", "ompi_mpi_cxx_dblcplex"},
    {"MPI_CXX_LONG_DOUBLE_COMPLEX", "ompi_mpi_cxx_ldblcplex"},
    {"MPI_COUNT", "ompi_mpi_count"},
    {"MPIX_C_FLOAT16", "ompi_mpi_short_float"},
    {"MPI_ERRORS_ARE_FATAL", "ompi_mpi_errors_are_fatal"},
    {"MPI_ERRORS_ABORT", "ompi_mpi_errors_abort"},
    {"MPI_ERRORS_RETURN", "ompi_mpi_errors_return"},
};

}  // namespace

uintptr_t predefined_value(const char* mpi_name) {
  for (const Row& row : rows) {
    if (strcmp(row.name, mpi_name) == 0) return reinterpret_cast<uintptr_t>(library().find_data(row.symbol));
  }
  return 0;
}

bool size_in_handle(uintptr_t, size_t*) {
  return false;
}

bool is_own_op(uintptr_t value) {
  for (const char* name : {"MPI_OP_NULL", "MPI_REPLACE", "MPI_NO_OP"}) {
    if (predefined_value(name) == value) return true;
  }
  return false;
}

}  // namespace stretto::shim
