// The standard ABI of MPI 5.0 (libmpi_abi.so.1): handles are pointers, predefined ones are small integers.
#pragma once
#include <cstddef>
#include <cstdint>

using MPI_Comm = struct MPI_ABI_Comm*;
using MPI_Datatype = struct MPI_ABI_Datatype*;
using MPI_Errhandler = struct MPI_ABI_Errhandler*;
using MPI_File = struct MPI_ABI_File*;
using MPI_Group = struct MPI_ABI_Group*;
using MPI_Info = struct MPI_ABI_Info*;
using MPI_Message = struct MPI_ABI_Message*;
using MPI_Op = struct MPI_ABI_Op*;
using MPI_Request = struct MPI_ABI_Request*;
using MPI_Session = struct MPI_ABI_Session*;
using MPI_Win = struct MPI_ABI_Win*;
using MPI_Aint = intptr_t;
using MPI_Count = int64_t;
using MPI_Offset = int64_t;
using MPI_Fint = int;

struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int internal[5];
};

#define MPI_BOTTOM (static_cast<void*>(nullptr))
#define MPI_IN_PLACE (reinterpret_cast<void*>(1))
#define MPI_STATUS_IGNORE (static_cast<MPI_Status*>(nullptr))
#define MPI_STATUSES_IGNORE (static_cast<MPI_Status*>(nullptr))
#define MPI_ERRCODES_IGNORE (static_cast<int*>(nullptr))

enum : int {
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -2,
  MPI_PROC_NULL = -3,
  MPI_ROOT = -4,
  MPI_KEYVAL_INVALID = 0,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192,
  MPI_MAX_PROCESSOR_NAME = 256,
  MPI_MAX_ERROR_STRING = 512,
  MPI_THREAD_SINGLE = 0,
  MPI_THREAD_FUNNELED = 1024,
  MPI_THREAD_SERIALIZED = 2048,
  MPI_THREAD_MULTIPLE = 4096,
  MPI_IDENT = 201,
  MPI_CONGRUENT = 202,
  MPI_SIMILAR = 203,
  MPI_UNEQUAL = 204,
  MPI_COMM_TYPE_SHARED = 221,
  MPI_COMBINER_NAMED = 101,
  MPI_COMBINER_F90_REAL = 113,
  MPI_COMBINER_F90_INTEGER = 115,
  MPI_TAG_UB = 501,
  MPI_CART = 211,
  MPI_GRAPH = 212,
  MPI_DIST_GRAPH = 213,
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
  MPIX_ERR_PROC_FAILED = 0,  // 0: there is none
  MPIX_ERR_PROC_FAILED_PENDING = 0,
  MPIX_ERR_REVOKED = 0,
  MPI_ERR_INTERN = 17,
  MPI_ERR_IN_STATUS = 19,
  MPI_ERR_PENDING = 18,
  MPI_ERR_NO_MEM = 39,
  MPI_ERR_UNSUPPORTED_OPERATION = 55,
};
