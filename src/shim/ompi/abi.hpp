// Open MPI 4 and 5 (libmpi.so.40): handles are pointers, predefined ones are addresses of data symbols of libmpi.
#pragma once
#include <cstddef>

using MPI_Comm = struct ompi_communicator_t*;
using MPI_Datatype = struct ompi_datatype_t*;
using MPI_Errhandler = struct ompi_errhandler_t*;
using MPI_File = struct ompi_file_t*;
using MPI_Group = struct ompi_group_t*;
using MPI_Info = struct ompi_info_t*;
using MPI_Message = struct ompi_message_t*;
using MPI_Op = struct ompi_op_t*;
using MPI_Request = struct ompi_request_t*;
using MPI_Session = struct ompi_instance_t*;
using MPI_Win = struct ompi_win_t*;
using MPI_Aint = ptrdiff_t;
using MPI_Count = long long;
using MPI_Offset = long long;
using MPI_Fint = int;

struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int cancelled;
  size_t byte_count;
};

#define MPI_BOTTOM (static_cast<void*>(nullptr))
#define MPI_IN_PLACE (reinterpret_cast<void*>(1))
#define MPI_STATUS_IGNORE (static_cast<MPI_Status*>(nullptr))
#define MPI_STATUSES_IGNORE (static_cast<MPI_Status*>(nullptr))
#define MPI_ERRCODES_IGNORE (static_cast<int*>(nullptr))

enum : int {
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -1,
  MPI_PROC_NULL = -2,
  MPI_ROOT = -4,
  MPI_KEYVAL_INVALID = -1,
  MPI_MAX_LIBRARY_VERSION_STRING = 256,
  MPI_MAX_PROCESSOR_NAME = 256,
  MPI_MAX_ERROR_STRING = 256,
  MPI_THREAD_SINGLE = 0,
  MPI_THREAD_FUNNELED = 1,
  MPI_THREAD_SERIALIZED = 2,
  MPI_THREAD_MULTIPLE = 3,
  MPI_IDENT = 0,
  MPI_CONGRUENT = 1,
  MPI_SIMILAR = 2,
  MPI_UNEQUAL = 3,
  MPI_COMM_TYPE_SHARED = 0,
  MPI_COMBINER_NAMED = 0,
  MPI_COMBINER_F90_REAL = 14,
  MPI_COMBINER_F90_INTEGER = 16,
  MPI_TAG_UB = 0,
  MPI_CART = 1,
  MPI_GRAPH = 2,
  MPI_DIST_GRAPH = 3,
};

enum : int {
  MPI_ERR_BUFFER = 1,
  MPI_ERR_COUNT = 2,
  MPI_ERR_TYPE = 3,
  MPI_ERR_COMM = 5,
  MPI_ERR_ROOT = 8,
  MPI_ERR_OP = 10,
  MPI_ERR_ARG = 13,
  MPI_ERR_TRUNCATE = 15,
  MPI_ERR_OTHER = 16,
  MPIX_ERR_PROC_FAILED = 75,
  MPIX_ERR_PROC_FAILED_PENDING = 76,
  MPIX_ERR_REVOKED = 77,
  MPI_ERR_INTERN = 17,
  MPI_ERR_IN_STATUS = 18,
  MPI_ERR_PENDING = 19,
  MPI_ERR_NO_MEM = 39,
  MPI_ERR_UNSUPPORTED_OPERATION = 52,
};
