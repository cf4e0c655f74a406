// MPICH 4 and 5, Intel MPI, MVAPICH and others of the MPICH ABI initiative (libmpi.so.12): handles are 32-bit integers.
#pragma once
#include <cstddef>
#include <cstdint>

using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Errhandler = int;
using MPI_File = struct ADIOI_FileD*;
using MPI_Group = int;
using MPI_Info = int;
using MPI_Message = int;
using MPI_Op = int;
using MPI_Request = int;
using MPI_Session = int;
using MPI_Win = int;
using MPI_Aint = long;
using MPI_Count = long long;
using MPI_Offset = long long;
using MPI_Fint = int;

struct MPI_Status {
  int count_lo;
  int count_hi_and_cancelled;
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
};

#define MPI_BOTTOM (static_cast<void*>(nullptr))
#define MPI_IN_PLACE (reinterpret_cast<void*>(intptr_t(-1)))
#define MPI_STATUS_IGNORE (reinterpret_cast<MPI_Status*>(1))
#define MPI_STATUSES_IGNORE (reinterpret_cast<MPI_Status*>(1))
#define MPI_ERRCODES_IGNORE (static_cast<int*>(nullptr))

enum : int {
  MPI_ANY_SOURCE = -2,
  MPI_ANY_TAG = -1,
  MPI_PROC_NULL = -1,
  MPI_ROOT = -3,
  MPI_KEYVAL_INVALID = 0x24000000,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192,
  MPI_MAX_PROCESSOR_NAME = 128,
  MPI_MAX_ERROR_STRING = 512,
  MPI_THREAD_SINGLE = 0,
  MPI_THREAD_FUNNELED = 1,
  MPI_THREAD_SERIALIZED = 2,
  MPI_THREAD_MULTIPLE = 3,
  MPI_IDENT = 0,
  MPI_CONGRUENT = 1,
  MPI_SIMILAR = 2,
  MPI_UNEQUAL = 3,
  MPI_COMM_TYPE_SHARED = 1,
  MPI_COMBINER_NAMED = 1,
  MPI_COMBINER_F90_REAL = 15,
  MPI_COMBINER_F90_INTEGER = 17,
  MPI_TAG_UB = 0x64400001,
  MPI_CART = 2,
  MPI_GRAPH = 1,
  MPI_DIST_GRAPH = 3,
};

enum : int {
  MPI_ERR_BUFFER = 1,
  MPI_ERR_COUNT = 2,
  MPI_ERR_TYPE = 3,
  MPI_ERR_COMM = 5,
  MPI_ERR_ROOT = 7,
  MPI_ERR_OP = 9,
  MPI_ERR_ARG = 12,
  MPI_ERR_TRUNCATE = 14,
  MPI_ERR_OTHER = 15,
  MPIX_ERR_PROC_FAILED = 101,
  MPIX_ERR_PROC_FAILED_PENDING = 102,
  MPIX_ERR_REVOKED = 103,
  MPI_ERR_INTERN = 16,
  MPI_ERR_IN_STATUS = 17,
  MPI_ERR_PENDING = 18,
  MPI_ERR_NO_MEM = 34,
  MPI_ERR_UNSUPPORTED_OPERATION = 44,
};
