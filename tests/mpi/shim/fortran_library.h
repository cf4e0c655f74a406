// The Fortran functions of an MPI library, by the names that compilers give them: mpi_x_ of mpif.h and `use mpi`, mpi_x_f08_ of
// `use mpi_f08`. Arguments are addresses, handles are integers.
#pragma once
#include <mpi.h>

extern int mpi_fortran_in_place_, mpi_fortran_bottom_;  // whose addresses stand for MPI_IN_PLACE and MPI_BOTTOM
extern int library_calls;                               // of these functions, so far

#define DECLARE(name, ...)         \
  void mpi_##name##_(__VA_ARGS__); \
  void mpi_##name##_f08_(__VA_ARGS__);
#define FORTRAN_FUNCTIONS(X)                                                                                                    \
  X(iallreduce, void* in, void* out, int* count, int* type, int* op, int* comm, int* request, int* ierror)                      \
  X(ibcast, void* data, int* count, int* type, int* root, int* comm, int* request, int* ierror)                                 \
  X(ialltoallw, void* in, int* counts, int* at, int* types, void* out, int* out_counts, int* out_at, int* out_types, int* comm, \
    int* request, int* ierror)                                                                                                  \
  X(allreduce_init, void* in, void* out, int* count, int* type, int* op, int* comm, int* info, int* request, int* ierror)       \
  X(bcast_init, void* data, int* count, int* type, int* root, int* comm, int* info, int* request, int* ierror)                  \
  X(alltoallw_init, void* in, int* counts, int* at, int* types, void* out, int* out_counts, int* out_at, int* out_types,        \
    int* comm, int* info, int* request, int* ierror)                                                                            \
  X(start, int* request, int* ierror)                                                                                           \
  X(startall, int* count, int* requests, int* ierror)                                                                           \
  X(wait, int* request, void* status, int* ierror)                                                                              \
  X(waitall, int* count, int* requests, void* statuses, int* ierror)                                                            \
  X(test, int* request, int* flag, void* status, int* ierror)                                                                   \
  X(testall, int* count, int* requests, int* flag, void* statuses, int* ierror)                                                 \
  X(request_free, int* request, int* ierror)
FORTRAN_FUNCTIONS(DECLARE)
// The length of the tag stands behind all else, as compilers have it.
DECLARE(comm_create_from_group, int* group, const char* tag, int* info, int* handler, int* made, int* ierror,
        unsigned long length)
