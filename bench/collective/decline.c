#include "decline.h"

#include "measure.h"
#include "ticks.h"

/* Blocks of calls that meet no other rank are long enough for a trace to be written to its file in each. */
enum { block = 200, long_block = 4000, max_blocks = 2000 };

typedef struct {
  MPI_Comm self, world, inter; /* inter: null with a single rank */
  float in[2], out[2];
  MPI_Request none;
  int block; /* calls, or turns of calls */
} Place;

/* One block of calls on each side. */
#define BOTH_SIDES(name, CALL)                       \
  static void name##_mpi(Place* at) {                \
    (void)at;                                        \
    for (int i = 0; i < at->block; ++i) MPI_##CALL;  \
  }                                                  \
  static void name##_pmpi(Place* at) {               \
    (void)at;                                        \
    for (int i = 0; i < at->block; ++i) PMPI_##CALL; \
  }

BOTH_SIDES(send_nowhere, Send(at->in, 1, MPI_FLOAT, MPI_PROC_NULL, 0, at->self))
BOTH_SIDES(barrier_self, Barrier(at->self))
BOTH_SIDES(bcast_self, Bcast(at->in, 2, MPI_FLOAT, 0, at->self))
BOTH_SIDES(allreduce_self, Allreduce(at->in, at->out, 2, MPI_FLOAT, MPI_SUM, at->self))
BOTH_SIDES(gather_self, Gather(at->in, 2, MPI_FLOAT, at->out, 2, MPI_FLOAT, 0, at->self))
static int flag;
BOTH_SIDES(test_nothing, Test(&at->none, &flag, MPI_STATUS_IGNORE))
BOTH_SIDES(wait_nothing, Wait(&at->none, MPI_STATUS_IGNORE))
BOTH_SIDES(probe_nothing, Iprobe(MPI_PROC_NULL, 0, at->self, &flag, MPI_STATUS_IGNORE))

/* A message to itself. */
#define EXCHANGE(name, P)                                            \
  static void exchange_##name(Place* at) {                           \
    for (int i = 0; i < at->block; ++i) {                            \
      MPI_Request both[2];                                           \
      P##MPI_Irecv(at->out, 2, MPI_FLOAT, 0, 5, at->self, &both[0]); \
      P##MPI_Isend(at->in, 2, MPI_FLOAT, 0, 5, at->self, &both[1]);  \
      P##MPI_Wait(&both[1], MPI_STATUS_IGNORE);                      \
      P##MPI_Wait(&both[0], MPI_STATUS_IGNORE);                      \
    }                                                                \
  }
EXCHANGE(mpi, )
EXCHANGE(pmpi, P)
BOTH_SIDES(barrier_world, Barrier(at->world))
BOTH_SIDES(allreduce_world, Allreduce(at->in, at->out, 2, MPI_FLOAT, MPI_SUM, at->world))
BOTH_SIDES(barrier_inter, Barrier(at->inter))

typedef enum { on_self, on_world, on_inter } Where;

typedef struct {
  const char* name;
  int calls; /* in a turn */
  Where where;
  void (*run[sides])(Place*);
} Case;

static const Case cases[] = {
    {"Test of MPI_REQUEST_NULL", 1, on_self, {test_nothing_mpi, test_nothing_pmpi}},
    {"Wait for MPI_REQUEST_NULL", 1, on_self, {wait_nothing_mpi, wait_nothing_pmpi}},
    {"Iprobe for MPI_PROC_NULL", 1, on_self, {probe_nothing_mpi, probe_nothing_pmpi}},
    {"Irecv, Isend, Wait, Wait: mean", 4, on_self, {exchange_mpi, exchange_pmpi}},
    {"Send to MPI_PROC_NULL", 1, on_self, {send_nowhere_mpi, send_nowhere_pmpi}},
    {"Barrier, MPI_COMM_SELF", 1, on_self, {barrier_self_mpi, barrier_self_pmpi}},
    {"Bcast 8 B, MPI_COMM_SELF", 1, on_self, {bcast_self_mpi, bcast_self_pmpi}},
    {"Allreduce 8 B, MPI_COMM_SELF", 1, on_self, {allreduce_self_mpi, allreduce_self_pmpi}},
    {"Gather 8 B, MPI_COMM_SELF", 1, on_self, {gather_self_mpi, gather_self_pmpi}},
    {"Barrier, all ranks", 1, on_world, {barrier_world_mpi, barrier_world_pmpi}},
    {"Allreduce 8 B, all ranks", 1, on_world, {allreduce_world_mpi, allreduce_world_pmpi}},
    {"Barrier, intercommunicator", 1, on_inter, {barrier_inter_mpi, barrier_inter_pmpi}},
};

/* Nanoseconds a call of one block. */
static double block_ns(const Case* c, int side, Place* at) {
  at->block = c->where == on_self ? long_block / c->calls : block;
  uint64_t from = ticks();
  c->run[side](at);
  return ticks_to_ns(ticks() - from) / (at->block * c->calls);
}

static unsigned blocks_for(const Case* c, double budget_ms, Place* at) {
  double pair = 0;
  for (int warm = 0; warm < 3; ++warm) pair = (block_ns(c, side_mpi, at) + block_ns(c, side_pmpi, at)) * at->block * c->calls;
  double blocks = budget_ms * 1e6 / pair;
  unsigned count = blocks < 20 ? 20 : blocks > max_blocks ? max_blocks : (unsigned)blocks;
  PMPI_Bcast(&count, 1, MPI_UNSIGNED, 0, at->world);
  return count;
}

static void measure_case(const Case* c, double budget_ms, int report, FILE* json, Place* at) {
  static double ns[sides][max_blocks];
  unsigned blocks = blocks_for(c, budget_ms, at);
  for (unsigned k = 0; k < 2 * blocks; ++k) {
    int side = (k ^ (k >> 1)) & 1;
    ns[side][k / 2] = block_ns(c, side, at);
  }
  if (!report) return;
  /* The 10th percentiles: what the call costs when nothing else disturbs it. */
  double mpi = summarise(ns[side_mpi], blocks).p10, pmpi = summarise(ns[side_pmpi], blocks).p10;
  printf("%-31s %10.1f %10.1f %10.1f\n", c->name, mpi, pmpi, mpi - pmpi);
  fflush(stdout);
  if (json)
    fprintf(
        json,
        "{\"kind\":\"decline\",\"call\":\"%s\",\"calls\":%d,\"local\":%s,\"mpi_ns\":%.2f,\"pmpi_ns\":%.2f,\"extra_ns\":%.2f}\n",
        c->name, c->calls, c->where == on_self ? "true" : "false", mpi, pmpi, mpi - pmpi);
}

static MPI_Comm intercommunicator(MPI_Comm comm, int rank, int ranks) {
  MPI_Comm half, inter = MPI_COMM_NULL;
  if (ranks < 2) return inter;
  MPI_Comm_split(comm, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, comm, 1 - rank % 2, 7, &inter);
  MPI_Comm_free(&half);
  return inter;
}

static int applies(const Case* c, const Place* at, int accelerating) {
  if (c->where == on_inter) return at->inter != MPI_COMM_NULL;
  return c->where == on_self || (at->inter != MPI_COMM_NULL && !accelerating);
}

void measure_declining(MPI_Comm comm, double budget_ms, int accelerating, FILE* json) {
  int rank, ranks;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  Place at = {MPI_COMM_SELF, comm, intercommunicator(comm, rank, ranks), {1, 2}, {0, 0}, MPI_REQUEST_NULL, block};
  if (rank == 0) printf("%-31s %10s %10s %10s\n", "ns per call", "MPI_X", "PMPI_X", "extra");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    if (applies(&cases[i], &at, accelerating)) measure_case(&cases[i], budget_ms, rank == 0, json, &at);
  if (at.inter != MPI_COMM_NULL) MPI_Comm_free(&at.inter);
}
