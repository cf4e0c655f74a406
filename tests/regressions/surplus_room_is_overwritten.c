// Receives that give more room than there is to come, of elements with gaps: what lay behind what came was overwritten. MPI
// leaves it as it was, in the midst of an element too.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 300000, stride = 3, used = 2 }; /* an element has two ints of three */
static int rank, size, wrong;
static int *given, *got;
static int given_counts[8], given_places[8], got_counts[8], got_places[8];
static MPI_Datatype pair, given_types[8], got_types[8];

static int value(int from, int to, int i) {
  return 1 + from * 1000003 + to * 7919 + i;
}

/* Block `b` of what was got: `came` ints from a rank, and nothing behind them. */
static void check(const char* name, int b, int from, int to, int came, int room) {
  const int* block = got + (size_t)b * room * stride;
  for (int i = 0; i < room * stride; ++i) {
    const int element = i / stride, in_element = i % stride, nth = element * used + in_element;
    const int expected = in_element < used && nth < came ? value(from, to, nth) : -1;
    if (block[i] == expected) continue;
    if (wrong++ < 5) printf("rank %d: wrong: %s of %d ints in %d elements: %d at %d\n", rank, name, came, room, block[i], i);
    return;
  }
}

static void lay(int came, int room) {
  for (int r = 0; r < size; ++r) {
    given_counts[r] = came;
    got_counts[r] = room;
    given_places[r] = r * came;
    got_places[r] = r * room;
    given_types[r] = MPI_INT;
    got_types[r] = pair;
    for (int i = 0; i < came; ++i) given[r * came + i] = value(rank, r, i);
  }
  memset(got, -1, sizeof(int) * (size_t)room * stride * (size_t)size);
}

static void try_sizes(int came, int room) {
  const int root = size - 1;
  lay(came, room);
  MPI_Gatherv(given, came, MPI_INT, got, got_counts, got_places, pair, root, MPI_COMM_WORLD);
  for (int r = 0; rank == root && r < size; ++r) check("gatherv", r, r, 0, came, room);

  lay(came, room);
  MPI_Scatterv(given, given_counts, given_places, MPI_INT, got, room, pair, root, MPI_COMM_WORLD);
  check("scatterv", 0, root, rank, came, room);

  lay(came, room);
  MPI_Alltoallv(given, given_counts, given_places, MPI_INT, got, got_counts, got_places, pair, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) check("alltoallv", r, r, rank, came, room);

  lay(came, room);
  for (int r = 0; r < size; ++r) {
    given_places[r] *= (int)sizeof(int);
    got_places[r] *= stride * (int)sizeof(int);
  }
  MPI_Alltoallw(given, given_counts, given_places, given_types, got, got_counts, got_places, got_types, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) check("alltoallw", r, r, rank, came, room);
}

static void try_bcast(int came, int room) {
  lay(came, room);
  if (rank == 0)
    MPI_Bcast(given, came, MPI_INT, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(got, room, pair, 0, MPI_COMM_WORLD);
  if (rank != 0) check("bcast", 0, 0, 0, came, room);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  given = malloc(sizeof(int) * most * (size_t)size);
  got = malloc(sizeof(int) * most * (size_t)size);
  MPI_Datatype two;
  MPI_Type_contiguous(used, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, stride * sizeof(int), &pair);
  MPI_Type_commit(&pair);
  const int came[] = {2, 5, 41, 3000, 30001, 120001};
  for (int i = 0; i < 6; ++i)
    for (int again = 0; again < 3; ++again) {
      try_sizes(came[i], (came[i] + 1) / used);
      try_sizes(came[i], came[i] / used + 7);
      try_sizes(came[i], 3 * came[i] / used / 2 + 1);
      if (came[i] < 100) try_bcast(came[i], came[i] / used + 5); /* longer ones may be refused */
    }
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  MPI_Type_free(&two);
  MPI_Type_free(&pair);
  free(given);
  free(got);
  MPI_Finalize();
  return wrong != 0;
}
