/* Collectives whose receivers do not know from MPI how much comes. Programs give more room than that, and MPI lets them; what is
 * longer than the room is an error of class MPI_ERR_TRUNCATE, and what comes after it is not given for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { piece = 60 << 10, most = 500000 };
static int rank, size;
static char *given, *got;
static int *given_counts, *got_counts, *places;

static void lay(int gives, int room) {
  for (int r = 0; r < size; ++r) {
    given_counts[r] = gives;
    got_counts[r] = room;
    places[r] = r * most;
    for (int i = 0; i < gives; ++i) given[r * most + i] = (char)(17 * rank + 5 * r + i % 101);
  }
  memset(got, -1, (size_t)size * most);
}

/* Of the block that `from` gave as its block number `index`. */
static void check(const char* what, const char* block, int from, int index, int bytes, int room) {
  for (int i = 0; i < room; ++i) {
    const char expected = i < bytes ? (char)(17 * from + 5 * index + i % 101) : -1;
    if (block[i] == expected) continue;
    printf("%s: rank %d: byte %d of %d in %d from %d is %d, not %d\n", what, rank, i, bytes, room, from, block[i], expected);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

static void try_sizes(int gives, int room) {
  const int root = size - 1;
  lay(gives, room);
  MPI_Gatherv(given, gives, MPI_CHAR, got, got_counts, places, MPI_CHAR, root, MPI_COMM_WORLD);
  for (int r = 0; rank == root && r < size; ++r) check("gatherv", got + places[r], r, 0, gives, room);
  lay(gives, room);
  MPI_Scatterv(given, given_counts, places, MPI_CHAR, got, room, MPI_CHAR, root, MPI_COMM_WORLD);
  check("scatterv", got, root, rank, gives, room);
  lay(gives, room);
  /* Open MPI itself does not let a rank give itself less than it takes. */
  given_counts[rank] = room;
  for (int i = gives; i < room; ++i) given[rank * most + i] = -1;
  MPI_Alltoallv(given, given_counts, places, MPI_CHAR, got, got_counts, places, MPI_CHAR, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) check("alltoallv", got + places[r], r, rank, gives, room);
}

static int class_of(int code) {
  int found = MPI_SUCCESS;
  MPI_Error_class(code, &found);
  return found;
}

/* Rank 0 has less room than the last rank, which is on another node, gives. */
static void try_too_long(int gives) {
  MPI_Comm comm[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
    lay(gives, gives);
    if (rank == 0) got_counts[size - 1] = gives - 5;
    const int code = i == 0 ? MPI_Gatherv(given, gives, MPI_CHAR, got, got_counts, places, MPI_CHAR, 0, comm[i])
                            : MPI_Alltoallv(given, given_counts, places, MPI_CHAR, got, got_counts, places, MPI_CHAR, comm[i]);
    if (class_of(code) != (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) {
      printf("rank %d: %s: %d bytes where there is less room: class %d\n", rank, i ? "alltoallv" : "gatherv", gives,
             class_of(code));
      MPI_Abort(MPI_COMM_WORLD, 4);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&comm[i]);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  given = malloc((size_t)size * most);
  got = malloc((size_t)size * most);
  given_counts = malloc(sizeof(int) * (size_t)size);
  got_counts = malloc(sizeof(int) * (size_t)size);
  places = malloc(sizeof(int) * (size_t)size);
  const int sizes[] = {8, piece - 1, piece, piece + 1, 3 * piece, 400000};
  for (int i = 0; i < 6; ++i) {
    try_sizes(sizes[i], sizes[i]);
    try_sizes(sizes[i], sizes[i] + 1);
    try_sizes(sizes[i], most);
  }

  for (int i = 0; i < 6; ++i) try_too_long(sizes[i]);
  try_sizes(piece, most);
  if (rank == 0) puts("right");
  MPI_Finalize();
  return 0;
}
