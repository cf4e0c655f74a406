/* What a program with known traffic says of itself: one line for each wrapped MPI call, in order, in the file
 * $TRUTH/<world rank>. truth.py compares them with the trace. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOBODY (-1)
#define ANYBODY (-2)
#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    int code_ = (call);                                                                                      \
    if (code_ != MPI_SUCCESS) fprintf(stderr, "%s: error %d\n", #call, code_), MPI_Abort(MPI_COMM_WORLD, 3); \
  } while (0)

static FILE* truth_file;
static int rank, size;

static inline void begin_truth(void) {
  char path[4096];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(path, sizeof path, "%s/%d", getenv("TRUTH"), rank);
  truth_file = fopen(path, "w");
  if (!truth_file) MPI_Abort(MPI_COMM_WORLD, 4);
}

/* A call: its bytes, and rank and tag of its partner. */
static inline void did(const char* function, const char* comm, long long sent, long long received, int peer, int tag) {
  fprintf(truth_file, "call %s %s %lld %lld %d %d\n", function, comm, sent, received, peer, tag);
}
/* A collective: also counted in the communicator's sequence. */
static inline void did_collective(const char* function, const char* comm, long long sent, long long received, int root) {
  fprintf(truth_file, "collective %s %s %lld %lld %d 0\n", function, comm, sent, received, root);
}
/* Parts of the last call: function is that which made the request. */
static inline void part(const char* function, const char* comm, long long sent, long long received, int peer, int tag) {
  fprintf(truth_file, "part %s %s %lld %lld %d %d\n", function, comm, sent, received, peer, tag);
}
/* A persistent collective that the last call, MPI_Start or MPI_Startall, started. */
static inline void started(const char* function, const char* comm, long long sent, long long received, int root) {
  fprintf(truth_file, "started %s %s %lld %lld %d 0\n", function, comm, sent, received, root);
}
/* Marks of the last call: flags, partitions, op, datatype ("flag in_place", "op MPI_SUM", ...). */
static inline void with(const char* what, const char* value) {
  fprintf(truth_file, "with %s %s\n", what, value);
}
/* The last call was a test that found nothing. The next one may; on shared cores, if the others can work meanwhile. */
static inline void came_to_nothing(void) {
  with("flag", "incomplete");
  usleep(100);
}
/* Traffic with a world rank: sent, received, put, got. */
static inline void traffic(const char* direction, int world_rank, long long bytes) {
  fprintf(truth_file, "traffic %s %d %lld\n", direction, world_rank, bytes);
}
/* Which communicator goes by a name: its members' world ranks follow. */
static inline void named(const char* name, MPI_Comm comm) {
  MPI_Group group, world;
  int n, i, *own, *theirs;
  MPI_Comm_size(comm, &n);
  own = malloc(n * sizeof(int)), theirs = malloc(n * sizeof(int));
  MPI_Comm_group(comm, &group), MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (i = 0; i < n; ++i) own[i] = i;
  MPI_Group_translate_ranks(group, n, own, world, theirs);
  fprintf(truth_file, "communicator %s", name);
  for (i = 0; i < n; ++i) fprintf(truth_file, " %d", theirs[i]);
  fprintf(truth_file, "\n");
  MPI_Group_free(&group), MPI_Group_free(&world);
  free(own), free(theirs);
}
static inline void end_truth(void) {
  fprintf(truth_file, "end\n");
  fclose(truth_file);
}
