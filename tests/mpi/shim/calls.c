/* Calls a known number of times into MPI and prints the counts that a record must show, one "name count" a line. */
#include <mpi.h>
#include <stdio.h>

static void point_to_point(int rank, int size) {
  int out = rank, in = -1;
  MPI_Request requests[2];
  MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (in != (rank + size - 1) % size) printf("wrong Irecv %d\n", in);
}

static void collectives(int rank, int size) {
  double mine = rank + 1, sum = 0;
  for (int i = 0; i < 3; ++i) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (sum != size * (size + 1) / 2.0) printf("wrong Allreduce %f\n", sum);
  int root_value = rank == 0 ? 42 : 0;
  MPI_Bcast(&root_value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (root_value != 42) printf("wrong Bcast %d\n", root_value);
  int total = 0;
  MPI_Reduce(&rank, &total, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0 && total != size - 1) printf("wrong Reduce %d\n", total);
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* So often that only some of the calls are timed. */
static void many_times(void) {
  double mine = 1, sum;
  for (int i = 0; i < 1000; ++i) {
    int flag = 1;
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    sum = 0;
    MPI_Exscan(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    MPI_Scan(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    if (!flag || sum != 1) printf("wrong Iprobe or Scan %d %f\n", flag, sum);
  }
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Comm copy;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  point_to_point(rank, size);
  collectives(rank, size);
  many_times();
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  if (rank == 0) {
    printf("MPI_Init 1\nMPI_Irecv 1\nMPI_Isend 1\nMPI_Waitall 1\nMPI_Allreduce 3\nMPI_Bcast 1\nMPI_Reduce 1\nMPI_Ibarrier 1\n");
    printf("MPI_Wait 1\nMPI_Barrier 1\nMPI_Comm_dup 1\nMPI_Comm_free 1\nMPI_Finalize 1\n");
    printf("MPI_Iprobe 1000\nMPI_Exscan 1000\nMPI_Scan 1000\n");
  }
  return 0;
}
