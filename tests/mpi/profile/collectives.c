/* Every collective: blocking, in place, nonblocking, persistent, among neighbours, across an intercommunicator. */
#include "truth.h"

#define W "MPI_COMM_WORLD"
static int out[10000], in[10000], counts[64], displs[64], others[64], wcounts[64], wdispls[64];
static MPI_Datatype types[64];
static MPI_Request request;
static MPI_Comm world;

static long long total(const int* list, int n) {
  long long sum = 0;
  for (int i = 0; i < n; ++i) sum += list[i];
  return sum;
}

static void done(const char* function, long long sent, long long received, int root) {
  did_collective(function, W, sent, received, root);
}

/* Waits for what was just started. */
static void finished(const char* function) {
  (void)function;
  MPI_Wait(&request, MPI_STATUS_IGNORE),
      did("MPI_Wait", W, 0, 0, strstr(function, "cast") || strstr(function, "gather_") ? 0 : NOBODY, 0);
}

static void rooted(void) {
  const int root = size - 1, is_root = rank == root;
  MPI_Bcast(out, 30, MPI_INT, root, world), done("MPI_Bcast", is_root ? 120 : 0, is_root ? 0 : 120, root),
      with("datatype", "MPI_INT");
  MPI_Reduce(out, in, 31, MPI_INT, MPI_MAX, root, world), done("MPI_Reduce", 124, is_root ? 124 : 0, root), with("op", "MPI_MAX");
  MPI_Reduce(is_root ? MPI_IN_PLACE : (void*)out, in, 32, MPI_INT, MPI_SUM, root, world);
  done("MPI_Reduce", 128, is_root ? 128 : 0, root);
  if (is_root) with("flag", "in_place");
  MPI_Gather(out, 3, MPI_INT, in, 3, MPI_INT, root, world), done("MPI_Gather", 12, is_root ? 12 * size : 0, root);
  MPI_Gather(is_root ? MPI_IN_PLACE : (void*)out, 3, MPI_INT, in, 3, MPI_INT, root, world);
  done("MPI_Gather", 12, is_root ? 12 * size : 0, root);
  if (is_root) with("flag", "in_place");
  MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, displs, MPI_INT, root, world);
  done("MPI_Gatherv", 4 * counts[rank], is_root ? 4 * total(counts, size) : 0, root);
  MPI_Scatter(out, 5, MPI_INT, in, 5, MPI_INT, root, world), done("MPI_Scatter", is_root ? 20 * size : 0, 20, root);
  MPI_Scatter(out, 5, MPI_INT, is_root ? MPI_IN_PLACE : (void*)in, 5, MPI_INT, root, world);
  done("MPI_Scatter", is_root ? 20 * size : 0, 20, root);
  if (is_root) with("flag", "in_place");
  MPI_Scatterv(out, counts, displs, MPI_INT, in, counts[rank], MPI_INT, root, world);
  done("MPI_Scatterv", is_root ? 4 * total(counts, size) : 0, 4 * counts[rank], root);
}

static void among_all(void) {
  MPI_Barrier(world), done("MPI_Barrier", 0, 0, NOBODY);
  MPI_Allreduce(out, in, 7, MPI_INT, MPI_SUM, world), done("MPI_Allreduce", 28, 28, NOBODY), with("op", "MPI_SUM");
  MPI_Allreduce(MPI_IN_PLACE, in, 8, MPI_INT, MPI_BAND, world), done("MPI_Allreduce", 32, 32, NOBODY), with("op", "MPI_BAND");
  with("flag", "in_place");
  MPI_Scan(out, in, 9, MPI_INT, MPI_SUM, world), done("MPI_Scan", 36, 36, NOBODY);
  MPI_Exscan(out, in, 9, MPI_INT, MPI_SUM, world), done("MPI_Exscan", 36, rank ? 36 : 0, NOBODY);
  MPI_Allgather(out, 2, MPI_INT, in, 2, MPI_INT, world), done("MPI_Allgather", 8, 8 * size, NOBODY);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_INT, world), done("MPI_Allgather", 8, 8 * size, NOBODY);
  with("flag", "in_place"), with("datatype", "MPI_INT");
  MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, displs, MPI_INT, world);
  done("MPI_Allgatherv", 4 * counts[rank], 4 * total(counts, size), NOBODY);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, in, counts, displs, MPI_INT, world);
  done("MPI_Allgatherv", 4 * counts[rank], 4 * total(counts, size), NOBODY), with("flag", "in_place");
  MPI_Alltoall(out, 6, MPI_INT, in, 6, MPI_INT, world), done("MPI_Alltoall", 24 * size, 24 * size, NOBODY);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, in, 6, MPI_INT, world), done("MPI_Alltoall", 24 * size, 24 * size, NOBODY);
  with("flag", "in_place");
  /* Rank r sends others[i] = r + i to rank i, and so receives the same numbers. */
  MPI_Alltoallv(out, others, displs, MPI_INT, in, others, displs, MPI_INT, world);
  done("MPI_Alltoallv", 4 * total(others, size), 4 * total(others, size), NOBODY);
  MPI_Alltoallw(out, others, wdispls, types, in, others, wdispls, types, world);
  done("MPI_Alltoallw", 2 * total(others, size), 2 * total(others, size), NOBODY);
  MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, world);
  done("MPI_Reduce_scatter", 4 * total(counts, size), 4 * counts[rank], NOBODY);
  MPI_Reduce_scatter_block(out, in, 4, MPI_INT, MPI_SUM, world), done("MPI_Reduce_scatter_block", 16 * size, 16, NOBODY);
}

static void nonblocking(void) {
  const int is_root = rank == 0;
  MPI_Ibarrier(world, &request), done("MPI_Ibarrier", 0, 0, NOBODY), finished("");
  MPI_Ibcast(out, 30, MPI_INT, 0, world, &request), done("MPI_Ibcast", is_root ? 120 : 0, is_root ? 0 : 120, 0), finished("cast");
  MPI_Iallreduce(out, in, 7, MPI_INT, MPI_SUM, world, &request), done("MPI_Iallreduce", 28, 28, NOBODY), finished("");
  MPI_Ireduce(out, in, 7, MPI_INT, MPI_SUM, 0, world, &request), done("MPI_Ireduce", 28, is_root ? 28 : 0, 0), finished("cast");
  MPI_Igather(out, 3, MPI_INT, in, 3, MPI_INT, 0, world, &request);
  done("MPI_Igather", 12, is_root ? 12 * size : 0, 0), finished("cast");
  MPI_Iscatterv(out, counts, displs, MPI_INT, in, counts[rank], MPI_INT, 0, world, &request);
  done("MPI_Iscatterv", is_root ? 4 * total(counts, size) : 0, 4 * counts[rank], 0), finished("cast");
  MPI_Iallgather(out, 2, MPI_INT, in, 2, MPI_INT, world, &request), done("MPI_Iallgather", 8, 8 * size, NOBODY), finished("");
  MPI_Iallgatherv(out, counts[rank], MPI_INT, in, counts, displs, MPI_INT, world, &request);
  done("MPI_Iallgatherv", 4 * counts[rank], 4 * total(counts, size), NOBODY), finished("");
  MPI_Ialltoall(out, 6, MPI_INT, in, 6, MPI_INT, world, &request), done("MPI_Ialltoall", 24 * size, 24 * size, NOBODY),
      finished("");
  MPI_Ialltoallw(out, others, wdispls, types, in, others, wdispls, types, world, &request);
  done("MPI_Ialltoallw", 2 * total(others, size), 2 * total(others, size), NOBODY), finished("");
  MPI_Iscan(out, in, 9, MPI_INT, MPI_SUM, world, &request), done("MPI_Iscan", 36, 36, NOBODY), finished("");
  MPI_Ireduce_scatter(out, in, counts, MPI_INT, MPI_SUM, world, &request);
  done("MPI_Ireduce_scatter", 4 * total(counts, size), 4 * counts[rank], NOBODY), finished("");
  MPI_Ireduce_scatter_block(out, in, 4, MPI_INT, MPI_SUM, world, &request);
  done("MPI_Ireduce_scatter_block", 16 * size, 16, NOBODY), finished("");
}

#if MPI_VERSION >= 4
static void persistent(void) {
  MPI_Request both[2];
  MPI_Allreduce_init(out, in, 7, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &both[0]), did("MPI_Allreduce_init", W, 0, 0, NOBODY, 0);
  MPI_Bcast_init(out, 5, MPI_INT, 0, world, MPI_INFO_NULL, &both[1]), did("MPI_Bcast_init", W, 0, 0, 0, 0);
  for (int round = 0; round < 3; ++round) {
    MPI_Start(&both[0]), done("MPI_Start", 28, 28, NOBODY), started("MPI_Allreduce_init", W, 28, 28, NOBODY);
    MPI_Wait(&both[0], MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, NOBODY, 0);
    MPI_Start(&both[1]), done("MPI_Start", rank ? 0 : 20, rank ? 20 : 0, 0);
    started("MPI_Bcast_init", W, rank ? 0 : 20, rank ? 20 : 0, 0);
    MPI_Wait(&both[1], MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, 0, 0);
    MPI_Startall(2, both), did("MPI_Startall", "-", 28 + (rank ? 0 : 20), 28 + (rank ? 20 : 0), NOBODY, 0);
    started("MPI_Allreduce_init", W, 28, 28, NOBODY), started("MPI_Bcast_init", W, rank ? 0 : 20, rank ? 20 : 0, 0);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE), did("MPI_Waitall", "-", 0, 0, NOBODY, 0);
    part("MPI_Allreduce_init", W, 0, 0, NOBODY, 0), part("MPI_Bcast_init", W, 0, 0, 0, 0);
  }
  MPI_Request_free(&both[0]), did("MPI_Request_free", W, 0, 0, NOBODY, 0);
  MPI_Request_free(&both[1]), did("MPI_Request_free", W, 0, 0, 0, 0);
}
#endif

/* A line: those at its ends have one neighbour. */
static void neighbours(void) {
  const int dims[1] = {size}, periods[1] = {0}, present = (rank > 0) + (rank < size - 1);
  MPI_Comm line;
  MPI_Cart_create(world, 1, dims, periods, 0, &line), did_collective("MPI_Cart_create", W, 0, 0, NOBODY);
  MPI_Comm_set_name(line, "line");
  MPI_Neighbor_allgather(out, 3, MPI_INT, in, 3, MPI_INT, line);
  did_collective("MPI_Neighbor_allgather", "line", 12, 12 * present, NOBODY);
  MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, line);
  did_collective("MPI_Neighbor_alltoall", "line", 12 * present, 12 * present, NOBODY);
  {
    const int two[2] = {1, 2}, at[2] = {0, 10};
    const long long out_bytes = 4 * ((rank > 0) * 1 + (rank < size - 1) * 2);
    const int back[2] = {2, 1};
    MPI_Neighbor_alltoallv(out, two, at, MPI_INT, in, back, at, MPI_INT, line);
    did_collective("MPI_Neighbor_alltoallv", "line", out_bytes, 4 * ((rank > 0) * 2 + (rank < size - 1) * 1), NOBODY);
  }
  MPI_Comm_free(&line), did("MPI_Comm_free", "line", 0, 0, NOBODY, 0);
}

/* Rank 0 against all others. */
static void across(void) {
  MPI_Comm half, inter;
  const int alone = rank == 0;
  MPI_Comm_split(world, alone, rank, &half), did_collective("MPI_Comm_split", W, 0, 0, NOBODY);
  MPI_Comm_set_name(half, "half");
  MPI_Intercomm_create(half, 0, world, alone ? 1 : 0, 5, &inter), did_collective("MPI_Intercomm_create", "half", 0, 0, NOBODY),
      with("tag", "5");
  MPI_Comm_set_name(inter, "across");
  MPI_Bcast(out, 10, MPI_INT, alone ? MPI_ROOT : 0, inter);
  did_collective("MPI_Bcast", "across", alone ? 40 : 0, alone ? 0 : 40, alone ? NOBODY : 0);
  MPI_Allgather(out, 2, MPI_INT, in, 2, MPI_INT, inter);
  did_collective("MPI_Allgather", "across", 8, alone ? 8 * (size - 1) : 8, NOBODY);
  MPI_Reduce(out, in, 3, MPI_INT, MPI_SUM, alone ? MPI_ROOT : 0, inter);
  did_collective("MPI_Reduce", "across", alone ? 0 : 12, alone ? 12 : 0, alone ? NOBODY : 0);
  if (alone)
    MPI_Send(out, 4, MPI_INT, 0, 9, inter), did("MPI_Send", "across", 16, 0, 0, 9), traffic("sent", 1, 16);
  else if (rank == 1)
    MPI_Recv(in, 9, MPI_INT, 0, 9, inter, MPI_STATUS_IGNORE), did("MPI_Recv", "across", 0, 16, 0, 9), traffic("received", 0, 16);
  MPI_Comm_free(&inter), did("MPI_Comm_free", "across", 0, 0, NOBODY, 0);
  MPI_Comm_free(&half), did("MPI_Comm_free", "half", 0, 0, NOBODY, 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  world = MPI_COMM_WORLD;
  begin_truth();
  named(W, world);
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1, displs[i] = 20 * i, others[i] = rank + i, wdispls[i] = 80 * i, types[i] = MPI_SHORT;
  }
  rooted();
  among_all();
  nonblocking();
#if MPI_VERSION >= 4
  persistent();
#endif
  neighbours();
  if (size > 1) across();
  end_truth();
  return MPI_Finalize();
}
