// A rank dies: those who wait for it are told by the call that completes their request, and nobody hangs.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "check.hpp"

namespace {

#if defined(MPI_ERR_PROC_FAILED)
constexpr int of_a_death = MPI_ERR_PROC_FAILED;
#elif defined(MPIX_ERR_PROC_FAILED)
constexpr int of_a_death = MPIX_ERR_PROC_FAILED;
#else
constexpr int of_a_death = MPI_ERR_OTHER;
#endif

int handler_calls = 0;

void count_call(MPI_Comm*, int*, ...) {
  ++handler_calls;
}

int class_of(int code) {
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  return kind;
}

// Of the error that a blocking call would have; the second time among others. MPI may give the codes by itself.
bool persistent_are_told(MPI_Request* prepared) {
  int index = -1;
  MPI_Status statuses[2];
  MPI_Startall(2, prepared);
  bool good = class_of(MPI_Wait(&prepared[0], MPI_STATUS_IGNORE)) == of_a_death;
  good = class_of(MPI_Waitany(2, prepared, &index, MPI_STATUS_IGNORE)) == of_a_death && index == 1 && good;
  MPI_Startall(2, prepared);
  good = MPI_Waitall(2, prepared, statuses) == MPI_ERR_IN_STATUS && good;
  for (const MPI_Status& status : statuses) good = class_of(status.MPI_ERROR) == of_a_death && good;
  return MPI_Wait(&prepared[0], MPI_STATUS_IGNORE) == MPI_SUCCESS && good;  // once only
}

}  // namespace

// Does not return: MPI_Finalize would need everybody.
void death() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_call, &counting);
  MPI_Comm_set_errhandler(comm, counting);
  int in = 1, out[5] = {0, 0, 0, 0, 0};
  MPI_Request prepared[2];
  for (int i = 0; i < 2; ++i) MPI_Allreduce_init(&in, &out[3 + i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &prepared[i]);
  MPI_Allreduce(&in, &out[0], 1, MPI_INT, MPI_SUM, comm);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == world.size - 1) raise(SIGKILL);
  MPI_Request single, several[3];
  MPI_Status statuses[3];
  MPI_Iallreduce(&in, &out[0], 1, MPI_INT, MPI_SUM, comm, &single);
  MPI_Iallreduce(&in, &out[1], 1, MPI_INT, MPI_SUM, comm, &several[0]);
  MPI_Irecv(&out[2], 1, MPI_INT, world.rank, 3, MPI_COMM_WORLD, &several[1]);
  MPI_Send(&in, 1, MPI_INT, world.rank, 3, MPI_COMM_WORLD);
  std::vector<int> all(size_t(world.size));
  MPI_Iallgather(&in, 1, MPI_INT, all.data(), 1, MPI_INT, comm, &several[2]);
  const int first = MPI_Wait(&single, MPI_STATUS_IGNORE);
  const int rest = MPI_Waitall(3, several, statuses);
  const bool persistent = persistent_are_told(prepared);
  const bool good = persistent && class_of(first) == of_a_death && rest == MPI_ERR_IN_STATUS &&
                    class_of(statuses[0].MPI_ERROR) == of_a_death && statuses[1].MPI_ERROR == MPI_SUCCESS &&
                    class_of(statuses[2].MPI_ERROR) == of_a_death && handler_calls == 7;
  printf("rank %d: %s, handler called %d times\n", world.rank, good ? "told" : "NOT TOLD", handler_calls);
  fflush(stdout);
  _exit(good ? 0 : 1);
}
