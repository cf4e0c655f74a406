/* Collectives whose receivers do not know from MPI how much comes. Programs give more room than that, and MPI lets them; what is
 * longer than the room is an error of class MPI_ERR_TRUNCATE, and what comes after it is not given for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { piece = 60 << 10, most = 500000 };
static int rank, size;
static char *given, *got;
static int *given_counts, *got_counts, *places;
static MPI_Datatype type = MPI_CHAR; /* of what is got: characters, */
static int stride = 1;               /* one in so many bytes */

static void lay(int gives, int room) {
  for (int r = 0; r < size; ++r) {
    given_counts[r] = gives;
    got_counts[r] = room;
    places[r] = r * most;
    for (int i = 0; i < gives; ++i) given[r * most + i] = (char)(17 * rank + 5 * r + i % 101);
  }
  memset(got, -1, (size_t)size * most * (size_t)stride);
}

/* Of the block that `from` gave as its block number `index`. */
static void check(const char* what, const char* block, int from, int index, int bytes, int room) {
  for (int at = 0; at < room * stride; ++at) {
    const int i = at / stride;
    const char expected = at % stride == 0 && i < bytes ? (char)(17 * from + 5 * index + i % 101) : -1;
    if (block[at] == expected) continue;
    printf("%s: rank %d: byte %d of %d in %d from %d is %d, not %d\n", what, rank, i, bytes, room, from, block[at], expected);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

static void try_sizes(int gives, int room) {
  const int root = size - 1;
  lay(gives, room);
  MPI_Gatherv(given, gives, MPI_CHAR, got, got_counts, places, type, root, MPI_COMM_WORLD);
  for (int r = 0; rank == root && r < size; ++r) check("gatherv", got + places[r] * stride, r, 0, gives, room);
  lay(gives, room);
  MPI_Scatterv(given, given_counts, places, MPI_CHAR, got, room, type, root, MPI_COMM_WORLD);
  check("scatterv", got, root, rank, gives, room);
  lay(gives, room);
  /* Open MPI itself does not let a rank give itself less than it takes. */
  given_counts[rank] = room;
  for (int i = gives; i < room; ++i) given[rank * most + i] = -1;
  MPI_Alltoallv(given, given_counts, places, MPI_CHAR, got, got_counts, places, type, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) check("alltoallv", got + places[r] * stride, r, rank, gives, room);
}

/* Calls that follow each other at once, with receivers that come late: what comes for the next must not fill the room of this. */
static void try_in_a_row(int gives, int room, int calls, int late) {
  const int root = size - 1;
  for (int scatter = 0; scatter < 2; ++scatter)
    for (int call = 0; call < calls; ++call) {
      lay(gives, room);
      for (int r = 0; r < size; ++r) given[r * most] = (char)call;
      if (late && (rank == root) != scatter && call % 3 == 0) usleep(2000);
      if (scatter)
        MPI_Scatterv(given, given_counts, places, MPI_CHAR, got, room, MPI_CHAR, root, MPI_COMM_WORLD);
      else
        MPI_Gatherv(given, gives, MPI_CHAR, got, got_counts, places, MPI_CHAR, root, MPI_COMM_WORLD);
      for (int r = scatter ? root : 0; (scatter || rank == root) && r < size; ++r) {
        char* block = got + (scatter ? 0 : places[r]);
        const int index = scatter ? rank : 0;
        if (block[0] != (char)call) {
          printf("%s: rank %d: call %d got what call %d gave\n", scatter ? "scatterv" : "gatherv", rank, call, block[0]);
          MPI_Abort(MPI_COMM_WORLD, 5);
        }
        block[0] = (char)(17 * r + 5 * index);
        check(scatter ? "scatterv" : "gatherv", block, r, index, gives, room);
      }
    }
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
  got = malloc((size_t)size * most * 2);
  given_counts = malloc(sizeof(int) * (size_t)size);
  got_counts = malloc(sizeof(int) * (size_t)size);
  places = malloc(sizeof(int) * (size_t)size);
  const int sizes[] = {8, piece - 1, piece, piece + 1, 3 * piece, 400000};
  for (stride = 2; stride > 0; --stride) {
    MPI_Type_create_resized(MPI_CHAR, 0, stride, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 6; i += stride) {
      if (stride == 1) try_sizes(sizes[i], sizes[i]);
      try_sizes(sizes[i], sizes[i] + 1);
      try_sizes(sizes[i], most);
    }
    MPI_Type_free(&type);
  }
  type = MPI_CHAR;
  stride = 1;

  for (int i = 0; i < 5; ++i) try_in_a_row(sizes[i], most, 12, 1);
  try_in_a_row(8, 8, 1300, 0);

  for (int i = 0; i < 6; ++i) try_too_long(sizes[i]);
  try_sizes(piece, most);
  if (rank == 0) puts("right");
  MPI_Finalize();
  return 0;
}
