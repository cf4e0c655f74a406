// A session's communicator, and what is made of it, may be used after MPI_Finalize, where Stretto had ended: persistent
// collectives that were prepared before failed, and a nonblocking one that some rank had started before waited for ever.
#include <mpi.h>
#include <stdio.h>

static int rank, wrong;

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
enum { kinds = 4 };
static MPI_Comm comms[kinds];
static MPI_Request started[kinds], prepared[kinds];
static int values[kinds], sums[kinds], given[kinds], got[kinds];

static void start(int k) {
  values[k] = rank + k;
  MPI_Iallreduce(&values[k], &sums[k], 1, MPI_INT, MPI_SUM, comms[k], &started[k]);
}

static void begin(MPI_Session* session) {
  MPI_Group group;
  int periodic = 0, two = 2;
  MPI_Request request;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
  MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "outlive", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[0]);
  MPI_Comm_rank(comms[0], &rank);
  MPI_Group_free(&group);
  MPI_Comm_split(comms[0], 0, rank, &comms[1]);
  MPI_Comm_idup(comms[1], &comms[2], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Cart_create(comms[2], 1, &two, &periodic, 0, &comms[3]);
  for (int k = 0; k < kinds; ++k) {
    MPI_Barrier(comms[k]);
    MPI_Allreduce_init(&given[k], &got[k], 1, MPI_INT, MPI_SUM, comms[k], MPI_INFO_NULL, &prepared[k]);
    if (rank == 0) start(k);
  }
}

static void end(MPI_Session* session) {
  for (int k = 0; k < kinds; ++k) {
    if (rank != 0) start(k);
    given[k] = rank + 2 * k;
    MPI_Start(&prepared[k]);
    MPI_Wait(&prepared[k], MPI_STATUS_IGNORE);
    MPI_Wait(&started[k], MPI_STATUS_IGNORE);
    wrong += sums[k] != 1 + 2 * k || got[k] != 1 + 4 * k;
    MPI_Request_free(&prepared[k]);
  }
  for (int k = 0; k < kinds; ++k) MPI_Comm_free(&comms[k]);
  MPI_Session_finalize(session);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
  MPI_Session session;
  begin(&session);
  MPI_Finalize();
  end(&session);
#else
  MPI_Finalize();
#endif
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  return wrong != 0;
}
