/* Programs with MPI and NCCL: traffic.c between MPI_Init and MPI_Finalize; "controlled" and "counted": what MPI says of
 * iterations and of recording, around ncclAllReduce of 1, 2, 3... floats; "alone": the same of a program that does not use NCCL.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin/standin.h"

int run(int argc, char** argv);

static ncclComm_t comm;
static float from[16], to[16];

static void make_communicator(int size, int rank) {
  ncclUniqueId id;
  if (rank == 0) ncclGetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  ncclCommInitRank(&comm, size, id, rank);
}

static void reduce(size_t count) {
  ncclAllReduce(from, to, count, ncclFloat32, ncclSum, comm, 0);
  standinSynchronize(comm);
}

static int controlled(int size, int rank) {
  MPI_Pcontrol(3);
  MPI_Pcontrol(3); /* iteration 1 */
  MPI_Pcontrol(0); /* said before NCCL is used, and heeded all the same */
  make_communicator(size, rank);
  reduce(1);
  MPI_Pcontrol(1);
  reduce(2);
  MPI_Pcontrol(0);
  reduce(3);
  MPI_Pcontrol(1);
  reduce(4);
  MPI_Pcontrol(2); /* the sums are of what follows */
  reduce(5);
  MPI_Pcontrol(3);
  reduce(6);
  return 0;
}

/* With STRETTO_ITERATION_CALLS=2: two MPI_Barrier make an iteration, however often NCCL is called. */
static int counted(int size, int rank) {
  make_communicator(size, rank);
  for (size_t i = 0; i < 4; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t j = 1; j <= 3; ++j) reduce(3 * i + j);
  }
  return 0;
}

static int alone(void) {
  MPI_Pcontrol(3);
  MPI_Pcontrol(0);
  MPI_Pcontrol(1);
  return 0;
}

int main(int argc, char** argv) {
  const char* program = argc > 1 ? argv[1] : "";
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char text[16];
  snprintf(text, sizeof text, "%d", rank);
  setenv("RANK", text, 1);
  snprintf(text, sizeof text, "%d", size);
  setenv("WORLD_SIZE", text, 1);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const int code = strcmp(program, "controlled") == 0 ? controlled(size, rank)
                   : strcmp(program, "counted") == 0  ? counted(size, rank)
                   : strcmp(program, "alone") == 0    ? alone()
                                                      : run(argc, argv);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return code || sum != size * (size - 1) / 2;
}
