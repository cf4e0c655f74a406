// Calls the functions of fortran_library.h as a Fortran program does, and checks their results against PMPI's. Prints what a
// record must show: "MPI_X count" of the calls, and "taken kind count" of those that Stretto must have done itself.
#include <stdio.h>
#include <string.h>

#include "fortran_library.h"

enum { length = 500, most = 64 };

static int wrong, rank, ranks;
static int own[length], total[length], in_place[length], told[2 * length], sent[most], received[most], swapped[most];
static int counts[most], bytes[most], types[most];
static int comm, int_type, sum, null_info, null_request, apart, ignored[6];

static void check(int good, const char* what) {
  if (good) return;
  ++wrong;
  printf("rank %d: wrong: %s\n", rank, what);
}

static void prepare(int seed) {
  for (int i = 0; i < length; ++i) {
    own[i] = (i * seed + rank) % 97;
    in_place[i] = rank * i + seed;
  }
  memset(total, -1, sizeof total);
  for (int i = 0; i < 2 * length; ++i) told[i] = rank == ranks - 1 ? i + seed : -1;
  for (int i = 0; i < most; ++i) swapped[i] = sent[i] = 100 * rank + i + seed;
  memset(received, -1, sizeof received);
}

// The constants stand for nothing here: PMPI is asked with buffers.
static void compare(int seed) {
  int expected[2 * length];
  PMPI_Allreduce(own, expected, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(!memcmp(total, expected, sizeof total), "allreduce");
  for (int i = 0; i < length; ++i) own[i] = rank * i + seed;
  PMPI_Allreduce(own, expected, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(!memcmp(in_place, expected, sizeof in_place), "allreduce in place");
  memcpy(expected, told, sizeof told);
  PMPI_Bcast(expected, 2 * length, MPI_INT, ranks - 1, MPI_COMM_WORLD);
  for (int i = 0; i < 2 * length; ++i) {
    const int covered = i < 100 || (i >= length + 100 && i < length + 300);
    check(told[i] == (covered || rank == ranks - 1 ? expected[i] : -1), "bcast from MPI_BOTTOM");
  }
  MPI_Datatype all_int[most];
  for (int i = 0; i < ranks; ++i) all_int[i] = MPI_INT;
  PMPI_Alltoallw(sent, counts, bytes, all_int, expected, counts, bytes, all_int, MPI_COMM_WORLD);
  check(!memcmp(received, expected, sizeof(int) * (size_t)ranks), "alltoallw");
  check(!memcmp(swapped, expected, sizeof(int) * (size_t)ranks), "alltoallw in place");
}

// The datatype of two stretches of `told`, by their addresses.
static MPI_Datatype stretches(void) {
  MPI_Datatype type;
  MPI_Aint at[2];
  PMPI_Get_address(&told[0], &at[0]);
  PMPI_Get_address(&told[length + 100], &at[1]);
  PMPI_Type_create_hindexed(2, (int[]){100, 200}, at, MPI_INT, &type);
  PMPI_Type_commit(&type);
  return type;
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

// Left to MPI, whose Fortran function is then called: the program's own operation.
#define CHECK_LEFT_TO_MPI(form)                                                                                  \
  {                                                                                                              \
    MPI_Op handle;                                                                                               \
    int n = length, ierror = -1, request, left, before = library_calls;                                          \
    PMPI_Op_create(add, 1, &handle);                                                                             \
    left = PMPI_Op_c2f(handle);                                                                                  \
    prepare(2);                                                                                                  \
    mpi_iallreduce_##form(own, total, &n, &int_type, &left, &comm, &request, &ierror);                           \
    check(library_calls == before + 1 && ierror == MPI_SUCCESS, "a nonblocking collective that is left to MPI"); \
    mpi_wait_##form(&request, ignored, &ierror);                                                                 \
    PMPI_Allreduce(own, in_place, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);                                     \
    check(!memcmp(total, in_place, sizeof total), "its result");                                                 \
    PMPI_Op_free(&handle);                                                                                       \
  }

#define NONBLOCKING(form)                                                                                                   \
  static void nonblocking_##form(int seed) {                                                                                \
    int n = length, one = 1, five = 5, root = ranks - 1, ierror = -1, flag = 0, requests[5], calls = library_calls;         \
    prepare(seed);                                                                                                          \
    mpi_iallreduce_##form(own, total, &n, &int_type, &sum, &comm, &requests[0], &ierror);                                   \
    check(ierror == MPI_SUCCESS, "error code of iallreduce");                                                               \
    mpi_iallreduce_##form(&mpi_fortran_in_place_, in_place, &n, &int_type, &sum, &comm, &requests[1], &ierror);             \
    mpi_ibcast_##form(&mpi_fortran_bottom_, &one, &apart, &root, &comm, &requests[2], &ierror);                             \
    mpi_ialltoallw_##form(sent, counts, bytes, types, received, counts, bytes, types, &comm, &requests[3], &ierror);        \
    mpi_ialltoallw_##form(&mpi_fortran_in_place_, counts, bytes, types, swapped, counts, bytes, types, &comm, &requests[4], \
                          &ierror);                                                                                         \
    check(library_calls == calls, "MPI did what Stretto was to do");                                                        \
    ierror = -1;                                                                                                            \
    if (seed % 2) mpi_wait_##form(&requests[1], ignored, &ierror);                                                          \
    if (seed % 2) check(ierror == MPI_SUCCESS && requests[1] == null_request, "wait");                                      \
    while (!flag) mpi_test_##form(&requests[0], &flag, ignored, &ierror);                                                   \
    mpi_waitall_##form(&five, requests, ignored, &ierror);                                                                  \
    check(ierror == MPI_SUCCESS, "error code of waitall");                                                                  \
    for (int i = 0; i < 5; ++i) check(requests[i] == null_request, "a completed request");                                  \
    compare(seed);                                                                                                          \
    CHECK_LEFT_TO_MPI(form)                                                                                                 \
  }

// Arrays and datatype may change once it is prepared. An error code is optional in mpi_f08.
#define PERSISTENT(form, no_code)                                                                                               \
  static void persistent_##form(int seed) {                                                                                     \
    int n = length, one = 1, five = 5, root = ranks - 1, ierror = -1, requests[5], calls = library_calls;                       \
    int own_counts[most], own_bytes[most], own_types[most];                                                                     \
    memcpy(own_counts, counts, sizeof counts), memcpy(own_bytes, bytes, sizeof bytes), memcpy(own_types, types, sizeof types);  \
    mpi_allreduce_init_##form(own, total, &n, &int_type, &sum, &comm, &null_info, &requests[0], &ierror);                       \
    check(ierror == MPI_SUCCESS, "error code of allreduce_init");                                                               \
    mpi_allreduce_init_##form(&mpi_fortran_in_place_, in_place, &n, &int_type, &sum, &comm, &null_info, &requests[1], no_code); \
    mpi_bcast_init_##form(&mpi_fortran_bottom_, &one, &apart, &root, &comm, &null_info, &requests[2], no_code);                 \
    mpi_alltoallw_init_##form(sent, own_counts, own_bytes, own_types, received, own_counts, own_bytes, own_types, &comm,        \
                              &null_info, &requests[3], no_code);                                                               \
    mpi_alltoallw_init_##form(&mpi_fortran_in_place_, own_counts, own_bytes, own_types, swapped, own_counts, own_bytes,         \
                              own_types, &comm, &null_info, &requests[4], no_code);                                             \
    memset(own_counts, 1, sizeof own_counts), memset(own_bytes, 1, sizeof own_bytes), memset(own_types, 0, sizeof own_types);   \
    for (int round = 0; round < 3; ++round) {                                                                                   \
      prepare(seed + round);                                                                                                    \
      if (round == 1)                                                                                                           \
        for (int i = 4; i >= 0; --i) mpi_start_##form(&requests[i], no_code);                                                   \
      else                                                                                                                      \
        mpi_startall_##form(&five, requests, &ierror);                                                                          \
      check(ierror == MPI_SUCCESS && library_calls == calls, "MPI did what Stretto was to do");                                 \
      ierror = -1;                                                                                                              \
      mpi_wait_##form(&requests[2], ignored, &ierror);                                                                          \
      check(ierror == MPI_SUCCESS, "error code of wait");                                                                       \
      mpi_waitall_##form(&five, requests, ignored, &ierror);                                                                    \
      for (int i = 0; i < 5; ++i) check(requests[i] != null_request, "a persistent request stays");                             \
      compare(seed + round);                                                                                                    \
      calls = library_calls;                                                                                                    \
    }                                                                                                                           \
    for (int i = 0; i < 5; ++i) mpi_request_free_##form(&requests[i], &ierror);                                                 \
    for (int i = 0; i < 5; ++i) check(requests[i] == null_request, "a freed request");                                          \
  }

#define mpi_iallreduce_mpif mpi_iallreduce_
#define mpi_ibcast_mpif mpi_ibcast_
#define mpi_ialltoallw_mpif mpi_ialltoallw_
#define mpi_allreduce_init_mpif mpi_allreduce_init_
#define mpi_bcast_init_mpif mpi_bcast_init_
#define mpi_alltoallw_init_mpif mpi_alltoallw_init_
#define mpi_start_mpif mpi_start_
#define mpi_startall_mpif mpi_startall_
#define mpi_wait_mpif mpi_wait_
#define mpi_waitall_mpif mpi_waitall_
#define mpi_test_mpif mpi_test_
#define mpi_request_free_mpif mpi_request_free_
NONBLOCKING(mpif)
NONBLOCKING(f08_)
PERSISTENT(mpif, &ierror)
PERSISTENT(f08_, NULL)

#define OF_SESSION(form, no_code)                                                                                             \
  static void of_session_##form(const char* tag) {                                                                            \
    MPI_Session session;                                                                                                      \
    MPI_Group all;                                                                                                            \
    PMPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);                                                         \
    PMPI_Group_from_session_pset(session, "mpi://WORLD", &all);                                                               \
    int group = PMPI_Group_c2f(all), handler = PMPI_Errhandler_c2f(MPI_ERRORS_ARE_FATAL), made, one = 1, ierror = -1, sum_of; \
    (void)ierror;                                                                                                             \
    mpi_comm_create_from_group_##form(&group, tag, &null_info, &handler, &made, no_code, strlen(tag));                        \
    MPI_Comm in_c = PMPI_Comm_f2c(made);                                                                                      \
    MPI_Allreduce(&one, &sum_of, 1, MPI_INT, MPI_SUM, in_c);                                                                  \
    check(sum_of == ranks, "allreduce in a session");                                                                         \
    PMPI_Comm_free(&in_c);                                                                                                    \
    PMPI_Group_free(&all);                                                                                                    \
    PMPI_Session_finalize(&session);                                                                                          \
  }
#define mpi_comm_create_from_group_mpif mpi_comm_create_from_group_
OF_SESSION(mpif, &ierror)
OF_SESSION(f08_, NULL)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Datatype by_address = stretches();
  comm = PMPI_Comm_c2f(MPI_COMM_WORLD);
  int_type = PMPI_Type_c2f(MPI_INT);
  sum = PMPI_Op_c2f(MPI_SUM);
  null_info = PMPI_Info_c2f(MPI_INFO_NULL);
  null_request = PMPI_Request_c2f(MPI_REQUEST_NULL);
  apart = PMPI_Type_c2f(by_address);
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1;
    bytes[i] = 4 * (ranks - 1 - i);
    types[i] = int_type;
  }
  // memory that only a blocking call may ask for
  MPI_Allreduce(own, total, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int seed = 3; seed < 5; ++seed) {
    nonblocking_mpif(seed);
    nonblocking_f08_(seed);
    persistent_mpif(seed);
    persistent_f08_(seed);
  }
  of_session_mpif("one");  // not taken over
  of_session_f08_("other");
  PMPI_Type_free(&by_address);
  MPI_Finalize();
  if (rank == 0) {
    printf("MPI_Iallreduce 12\nMPI_Ibcast 4\nMPI_Ialltoallw 8\nMPI_Allreduce_init 8\nMPI_Bcast_init 4\nMPI_Alltoallw_init 8\n");
    printf("MPI_Start 20\nMPI_Startall 8\nMPI_Request_free 20\nMPI_Waitall 16\n");
    printf("taken allreduce 33\ntaken bcast 16\ntaken alltoallw 32\n");
  }
  return wrong != 0;
}
