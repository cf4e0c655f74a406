// Stands in for the Fortran library of Open MPI 5, which its wheel lacks: the functions of fortran_library.h by way of PMPI, as
// the real ones do it. Statuses are ignored.
#include "fortran_library.h"

int mpi_fortran_in_place_, mpi_fortran_bottom_, library_calls;

enum { most = 64 };

static void* buffer(void* address) {
  return address == &mpi_fortran_in_place_ ? MPI_IN_PLACE : address == &mpi_fortran_bottom_ ? MPI_BOTTOM : address;
}

// Optional in mpi_f08.
static void put(int* ierror, int code) {
  if (ierror) *ierror = code;
}

static void to_c(const int* from, MPI_Request* to, int count) {
  for (int i = 0; i < count; ++i) to[i] = PMPI_Request_f2c(from[i]);
}
static void to_fortran(const MPI_Request* from, int* to, int count) {
  for (int i = 0; i < count; ++i) to[i] = PMPI_Request_c2f(from[i]);
}
static MPI_Datatype* types_to_c(const int* from, MPI_Datatype* to) {
  int size = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < size; ++i) to[i] = PMPI_Type_f2c(from[i]);
  return to;
}

#define TYPE PMPI_Type_f2c(*type)
#define OP PMPI_Op_f2c(*op)
#define COMM PMPI_Comm_f2c(*comm)
#define INFO PMPI_Info_f2c(*info)

// Both names of a function: one call of MPI, and the request that it leaves.
#define DEFINE(name, parameters, call) \
  void mpi_##name##_ parameters {      \
    MPI_Request made;                  \
    ++library_calls;                   \
    put(ierror, call);                 \
    *request = PMPI_Request_c2f(made); \
  }                                    \
  void mpi_##name##_f08_ parameters {  \
    MPI_Request made;                  \
    ++library_calls;                   \
    put(ierror, call);                 \
    *request = PMPI_Request_c2f(made); \
  }

DEFINE(iallreduce, (void* in, void* out, int* count, int* type, int* op, int* comm, int* request, int* ierror),
       PMPI_Iallreduce(buffer(in), buffer(out), *count, TYPE, OP, COMM, &made))
DEFINE(ibcast, (void* data, int* count, int* type, int* root, int* comm, int* request, int* ierror),
       PMPI_Ibcast(buffer(data), *count, TYPE, *root, COMM, &made))
DEFINE(allreduce_init, (void* in, void* out, int* count, int* type, int* op, int* comm, int* info, int* request, int* ierror),
       PMPI_Allreduce_init(buffer(in), buffer(out), *count, TYPE, OP, COMM, INFO, &made))
DEFINE(bcast_init, (void* data, int* count, int* type, int* root, int* comm, int* info, int* request, int* ierror),
       PMPI_Bcast_init(buffer(data), *count, TYPE, *root, COMM, INFO, &made))

static int from_group(int* group, const char* tag, int* info, int* handler, int* made, unsigned long length) {
  char in_c[most] = "";
  MPI_Comm comm;
  __builtin_memcpy(in_c, tag, length < most ? length : most - 1);
  int code = PMPI_Comm_create_from_group(PMPI_Group_f2c(*group), in_c, INFO, PMPI_Errhandler_f2c(*handler), &comm);
  *made = PMPI_Comm_c2f(comm);
  return code;
}
void mpi_comm_create_from_group_(int* group, const char* tag, int* info, int* handler, int* made, int* ierror,
                                 unsigned long length) {
  put(ierror, from_group(group, tag, info, handler, made, length));
}
void mpi_comm_create_from_group_f08_(int* group, const char* tag, int* info, int* handler, int* made, int* ierror,
                                     unsigned long length) {
  put(ierror, from_group(group, tag, info, handler, made, length));
}

static MPI_Datatype in_types[most], out_types[most];
DEFINE(ialltoallw,
       (void* in, int* counts, int* at, int* types, void* out, int* out_counts, int* out_at, int* other_types, int* comm,
        int* request, int* ierror),
       PMPI_Ialltoallw(buffer(in), counts, at, types_to_c(types, in_types), buffer(out), out_counts, out_at,
                       types_to_c(other_types, out_types), COMM, &made))
DEFINE(alltoallw_init,
       (void* in, int* counts, int* at, int* types, void* out, int* out_counts, int* out_at, int* other_types, int* comm,
        int* info, int* request, int* ierror),
       PMPI_Alltoallw_init(buffer(in), counts, at, types_to_c(types, in_types), buffer(out), out_counts, out_at,
                           types_to_c(other_types, out_types), COMM, INFO, &made))

// Both names of a function that gets requests and leaves them changed.
#define DEFINE_FOR(name, number, parameters, call) \
  void mpi_##name##_ parameters {                  \
    MPI_Request in_c[most];                        \
    ++library_calls;                               \
    to_c(requests, in_c, number);                  \
    put(ierror, call);                             \
    to_fortran(in_c, requests, number);            \
  }                                                \
  void mpi_##name##_f08_ parameters {              \
    MPI_Request in_c[most];                        \
    ++library_calls;                               \
    to_c(requests, in_c, number);                  \
    put(ierror, call);                             \
    to_fortran(in_c, requests, number);            \
  }

DEFINE_FOR(start, 1, (int* requests, int* ierror), PMPI_Start(in_c))
DEFINE_FOR(startall, *count, (int* count, int* requests, int* ierror), PMPI_Startall(*count, in_c))
DEFINE_FOR(request_free, 1, (int* requests, int* ierror), PMPI_Request_free(in_c))
DEFINE_FOR(wait, 1, (int* requests, void* status, int* ierror), ((void)status, PMPI_Wait(in_c, MPI_STATUS_IGNORE)))
DEFINE_FOR(waitall, *count, (int* count, int* requests, void* statuses, int* ierror),
           ((void)statuses, PMPI_Waitall(*count, in_c, MPI_STATUSES_IGNORE)))
DEFINE_FOR(test, 1, (int* requests, int* flag, void* status, int* ierror),
           ((void)status, PMPI_Test(in_c, flag, MPI_STATUS_IGNORE)))
DEFINE_FOR(testall, *count, (int* count, int* requests, int* flag, void* statuses, int* ierror),
           ((void)statuses, PMPI_Testall(*count, in_c, flag, MPI_STATUSES_IGNORE)))
