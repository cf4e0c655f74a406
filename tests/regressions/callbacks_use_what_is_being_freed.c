// The delete callbacks of a communicator's or datatype's attributes may use it to the end, when Stretto's own attribute of it is
// gone already. What such a callback had Stretto make was taken for that of the next one with the same handle: wrong numbers,
// then hangs; a datatype's size was taken for another's.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { bytes = 256 };
static int rank, size, wrong, total;

static int add_up(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key, (void)value, (void)extra;
  const int mine = rank + 1;
  return MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm);
}

static int move(MPI_Datatype type, int key, void* value, void* extra) {
  (void)key, (void)value, (void)extra;
  char block[bytes];
  memset(block, rank == 0, bytes);
  return MPI_Bcast(block, 1, type, 0, MPI_COMM_WORLD);
}

// later: the attribute is set after the first collective, and deleted before Stretto's.
static void free_communicators(int key, int later, int used) {
  for (int i = 0; i < 6; ++i) {
    MPI_Comm copy, turned;
    int one = 1, sum = 0, place, value, all[8];
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (!later) MPI_Comm_set_attr(copy, key, &key);
    if (used) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
    if (later) MPI_Comm_set_attr(copy, key, &key);
    total = 0;
    MPI_Comm_free(&copy);
    wrong += total != size * (size + 1) / 2 || (used && sum != size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_rank(turned, &place);
    value = place == 0 ? 100 + i : 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, turned);
    MPI_Allgather(&place, 1, MPI_INT, all, 1, MPI_INT, turned);
    wrong += value != 100 + i;
    for (int r = 0; r < size; ++r) wrong += all[r] != r;
    MPI_Comm_free(&turned);
  }
}

static void free_types(int key) {
  for (int i = 0; i < 8; ++i) {
    MPI_Datatype type;
    const int count = 4 + 3 * i;
    char block[bytes];
    MPI_Type_vector(count, 1, 2, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, key, &key);
    memset(block, rank == 0 ? 7 : 0, bytes);
    MPI_Bcast(block, 1, type, 0, MPI_COMM_WORLD);
    for (int b = 0; b < count; ++b) wrong += block[2 * b] != 7;
    wrong += rank > 0 && block[2 * count] != 0;
    MPI_Type_free(&type);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int of_communicators, of_types;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, add_up, &of_communicators, NULL);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, move, &of_types, NULL);
  free_communicators(of_communicators, 0, 0);
  free_communicators(of_communicators, 0, 1);
  free_communicators(of_communicators, 1, 1);
  free_communicators(of_communicators, rank % 2, 1);
  free_types(of_types);
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
