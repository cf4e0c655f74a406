// MPI_Waitall while a nonblocking collective of Stretto's is outstanding. MPICH's MPI_Request_get_status, by which Stretto looked
// whether MPI would wait, makes persistent receives inactive: their statuses came empty, and their errors were lost.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { length = 4, tag = 7, rounds = 3 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int other = 1 - rank;
  int sent[2 * length], got[length], plain[length];
  for (int i = 0; i < 2 * length; ++i) sent[i] = 10 * rank + i;
  MPI_Request receive, all[5];
  MPI_Status statuses[5];
  MPI_Recv_init(got, length, MPI_INT, other, tag, MPI_COMM_WORLD, &receive);
#if MPI_VERSION >= 4
  MPI_Comm line;
  int mine = rank, ours[2] = {-1, -1};
  MPI_Request neighbours;
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){2}, (int[]){0}, 0, &line);
  MPI_Neighbor_allgather_init(&mine, 1, MPI_INT, ours, 1, MPI_INT, line, MPI_INFO_NULL, &neighbours);
#endif
  for (int round = 0; round < rounds; ++round) {
#ifdef OPEN_MPI  // goes wrong by itself after a receive that was too short
    const int is_long = 0;
#else
    const int is_long = round == 1;
#endif
    MPI_Start(&receive);
    MPI_Irecv(plain, length, MPI_INT, other, tag + 1, MPI_COMM_WORLD, &all[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(sent, is_long ? 2 * length : length - 1, MPI_INT, other, tag, MPI_COMM_WORLD);
    MPI_Send(sent, length - 2, MPI_INT, other, tag + 1, MPI_COMM_WORLD);
    if (rank == 1) usleep(50000);
    all[0] = receive;
    MPI_Ibarrier(MPI_COMM_WORLD, &all[2]);
    all[3] = MPI_REQUEST_NULL;
    all[4] = MPI_REQUEST_NULL;
#if MPI_VERSION >= 4
    MPI_Start(&neighbours);
    all[4] = neighbours;
#endif
    for (int i = 0; i < 5; ++i) statuses[i].MPI_ERROR = MPI_ERR_OTHER;
    const int code = MPI_Waitall(5, all, statuses);
    int class = MPI_SUCCESS, count = -1, plain_count = -1;
    if (is_long) {
      MPI_Error_class(statuses[0].MPI_ERROR, &class);
      wrong += code != MPI_ERR_IN_STATUS || class != MPI_ERR_TRUNCATE;
      for (int i = 1; i < 5; ++i) wrong += statuses[i].MPI_ERROR != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_ERR_PENDING;
      for (int i = 1; i < 5; ++i)
        if (statuses[i].MPI_ERROR == MPI_ERR_PENDING) wrong += MPI_Wait(&all[i], &statuses[i]) != MPI_SUCCESS;
    } else {
      MPI_Get_count(&statuses[0], MPI_INT, &count);
      wrong += code != MPI_SUCCESS || count != length - 1 || got[length - 2] != 10 * other + length - 2;
    }
    MPI_Get_count(&statuses[1], MPI_INT, &plain_count);
    wrong += statuses[0].MPI_SOURCE != other || statuses[0].MPI_TAG != tag;
    wrong += statuses[1].MPI_SOURCE != other || statuses[1].MPI_TAG != tag + 1 || plain_count != length - 2;
    wrong += all[0] != receive || all[1] != MPI_REQUEST_NULL || all[2] != MPI_REQUEST_NULL;
    if (wrong)
      printf("rank %d, round %d: code %d, class %d, %d numbers from %d\n", rank, round, code, class, count,
             statuses[0].MPI_SOURCE);
  }
  MPI_Request_free(&receive);
#if MPI_VERSION >= 4
  wrong += ours[1 - rank] != 1 - rank;
  MPI_Request_free(&neighbours);
  MPI_Comm_free(&line);
#endif
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
