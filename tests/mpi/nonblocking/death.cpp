// A rank dies: those who wait for it are told by the call that completes their request, and nobody hangs.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "check.hpp"

namespace {

int handler_calls = 0;

void count_call(MPI_Comm*, int*, ...) {
  ++handler_calls;
}

}  // namespace

// Does not return: MPI_Finalize would need everybody.
void death() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_call, &counting);
  MPI_Comm_set_errhandler(comm, counting);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == world.size - 1) raise(SIGKILL);
  int in = 1, out[3] = {0, 0, 0};
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
  const bool good = first != MPI_SUCCESS && rest == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR != MPI_SUCCESS &&
                    statuses[1].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_ERROR != MPI_SUCCESS && handler_calls == 3;
  printf("rank %d: %s, handler called %d times\n", world.rank, good ? "told" : "NOT TOLD", handler_calls);
  fflush(stdout);
  _exit(good ? 0 : 1);
}
