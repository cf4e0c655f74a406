// A tool that is linked into the program: its MPI_X come before Stretto's and go on by PMPI_X. Those are then the program's
// calls, to be counted and taken over; where the program has no MPI_X of its own, PMPI_X is MPI's own and nobody else's.
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Init(int* argc, char*** argv) {
  return PMPI_Init(argc, argv);
}
int MPI_Finalize(void) {
  return PMPI_Finalize();
}
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++calls;
  return PMPI_Allreduce(in, out, count, type, op, comm);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  ++calls;
  return PMPI_Comm_dup(comm, copy);
}
int MPI_Comm_free(MPI_Comm* comm) {
  ++calls;
  return PMPI_Comm_free(comm);
}
int MPI_Type_free(MPI_Datatype* type) {
  ++calls;
  return PMPI_Type_free(type);
}

// Handles of datatypes are given again: what was known of the former one must be forgotten.
static int datatypes(MPI_Comm comm, int rank) {
  int wrong = 0;
  for (int n = 1; n < 40; ++n) {
    int vector[80], want = 0;
    MPI_Datatype type;
    MPI_Type_vector(n, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 80; ++i) vector[i] = rank == 0 ? i + n : -1;
    MPI_Bcast(vector, 1, type, 0, comm);
    for (int i = 0; i < 80; ++i) {
      want = rank == 0 || (i % 2 == 0 && i < 2 * n) ? i + n : -1;
      wrong |= vector[i] != want;
    }
    MPI_Type_free(&type);
  }
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, wrong = 0, sum;
  MPI_Comm comm;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 200; ++round) {
    int value = rank + round;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 5; ++i) {
      MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
      wrong |= sum != ranks * round + ranks * (ranks - 1) / 2;
    }
    MPI_Comm_free(&comm);
  }
  wrong |= datatypes(MPI_COMM_WORLD, rank);
  wrong |= calls != 200 * 7 + 39;
  int largest;
  PMPI_Reduce(&rank, &largest, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
  wrong |= rank == 0 && largest != ranks - 1;
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong;
}
