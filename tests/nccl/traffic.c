/* Programs with known traffic. Each call is first written to TRAFFIC_LOG.<rank> as the checker expects it, then made, and its
 * result compared with the truth. Usage: run(argc, argv): argv[1] names the program. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin/standin.h"

enum { most = 4096 };
static const char* type_names[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                   "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                   "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char* op_names[] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin", "ncclAvg"};

static FILE* told;
static int rank, size, wrong;

static void tell(const char* format, ...) {
  va_list list;
  va_start(list, format);
  vfprintf(told, format, list);
  va_end(list);
  fflush(told);
}

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
  ++wrong;
}

/* function, communicator, count, datatype, op, root or peer, in place, succeeds */
static void call(const char* function, const char* comm, size_t count, int type, int op, int peer, int in_place, int good) {
  tell("%s %s %zu %s %s %d %d %d\n", function, comm, count, type < 12 ? type_names[type] : "-",
       op < 0   ? "-"
       : op < 5 ? op_names[op]
                : "ncclPreMulSum",
       peer, in_place, good);
}

static void plain(const char* function) {
  tell("%s\n", function);
}

static float send_floats[most], receive_floats[most * 8];
static double doubles[most];
static int32_t ints[most], int_results[most];
static int64_t longs[16], long_results[16 * 8];
static unsigned char bytes[most];

static void fill(void) {
  for (int i = 0; i < most; ++i) {
    send_floats[i] = (float)(i % 7 + rank);
    doubles[i] = i * 0.5 + rank;
    ints[i] = rank + 2;
    bytes[i] = (unsigned char)(rank + 1);
  }
  for (int i = 0; i < 16; ++i) longs[i] = 100 * rank + i;
}

static ncclUniqueId shared_id(const char* distinction) {
  ncclUniqueId id;
  memset(&id, 0, sizeof id);
  snprintf(id.internal, sizeof id.internal, "%s %s", getenv("TRAFFIC_ID"), distinction);
  return id;
}

static ncclComm_t world(void) {
  ncclComm_t comm;
  tell("CommInitRank world %d %d\n", size, rank);
  check(ncclCommInitRank(&comm, size, shared_id("world"), rank) == ncclSuccess, "ncclCommInitRank");
  return comm;
}

static void destroy(ncclComm_t comm) {
  plain("CommFinalize");
  ncclCommFinalize(comm);
  plain("CommDestroy");
  ncclCommDestroy(comm);
}

static void collectives(ncclComm_t c, const char* name) {
  const int next = (rank + 1) % size;
  for (int i = 0; i < 3; ++i) {
    call("AllReduce", name, 1000, ncclFloat32, ncclSum, -1, 0, 1);
    ncclAllReduce(send_floats, receive_floats, 1000, ncclFloat32, ncclSum, c, 0);
  }
  standinSynchronize(c);
  float sum = 0;
  for (int r = 0; r < size; ++r) sum += (float)(3 + r);
  check(receive_floats[3] == sum, "sum of floats");
  call("AllReduce", name, 10, ncclFloat64, ncclMax, -1, 1, 1);
  ncclAllReduce(doubles, doubles, 10, ncclFloat64, ncclMax, c, 0);
  call("Reduce", name, 7, ncclInt32, ncclProd, 1, 0, 1);
  ncclReduce(ints, int_results, 7, ncclInt32, ncclProd, 1, c, 0);
  call("Broadcast", name, 33, ncclFloat32, -1, 0, 0, 1);
  ncclBroadcast(send_floats, receive_floats, 33, ncclFloat32, 0, c, 0);
  call("Bcast", name, 100, ncclUint8, -1, 1, 0, 1);
  ncclBcast(bytes, 100, ncclUint8, 1, c, 0);
  call("AllGather", name, 16, ncclInt64, -1, -1, 0, 1);
  ncclAllGather(longs, long_results, 16, ncclInt64, c, 0);
  call("ReduceScatter", name, 64, ncclFloat32, ncclAvg, -1, 0, 1);
  ncclReduceScatter(send_floats, receive_floats + 100, 64, ncclFloat32, ncclAvg, c, 0);
  standinSynchronize(c);
  check(doubles[2] == 1.0 + size - 1, "maximum of doubles");
  check(rank != 1 || int_results[0] == (size == 2 ? 6 : size == 3 ? 24 : 120), "product of ints");
  check(bytes[50] == 2 && long_results[16 * next + 4] == 100 * next + 4, "broadcast and gather");
}

static void messages(ncclComm_t c, const char* name) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  plain("GroupStart");
  ncclGroupStart();
  call("Send", name, 50, ncclInt32, -1, next, 0, 1);
  ncclSend(ints, 50, ncclInt32, next, c, 0);
  call("Recv", name, 50, ncclInt32, -1, before, 0, 1);
  ncclRecv(int_results, 50, ncclInt32, before, c, 0);
  plain("GroupEnd");
  ncclGroupEnd();
  standinSynchronize(c);
  check(int_results[49] == before + 2, "message");
  call("AlltoAll", name, 5, ncclFloat32, -1, -1, 0, 1);
  ncclAlltoAll(send_floats, receive_floats, 5, ncclFloat32, c, 0);
  call("Gather", name, 6, ncclFloat32, -1, 1, 0, 1);
  ncclGather(send_floats, receive_floats, 6, ncclFloat32, 1, c, 0);
  call("Scatter", name, 7, ncclFloat32, -1, 0, 0, 1);
  ncclScatter(send_floats, receive_floats, 7, ncclFloat32, 0, c, 0);
  standinSynchronize(c);
}

/* A group whose launch order is not the call order, one within another, one that is only simulated. */
static void groups(ncclComm_t c, const char* name) {
  plain("GroupStart");
  ncclGroupStart();
  call("AllReduce", name, 8, ncclFloat32, ncclSum, -1, 0, 1);
  ncclAllReduce(send_floats, receive_floats, 8, ncclFloat32, ncclSum, c, 0);
  plain("GroupStart");
  ncclGroupStart();
  call("AllReduce", name, 4000, ncclFloat32, ncclMin, -1, 0, 1);
  ncclAllReduce(send_floats, receive_floats + 8, 4000, ncclFloat32, ncclMin, c, 0);
  plain("GroupEnd");
  ncclGroupEnd();
  call("Broadcast", name, 9, ncclFloat32, -1, 0, 0, 1);
  ncclBroadcast(send_floats, receive_floats + 4008, 9, ncclFloat32, 0, c, 0);
  plain("GroupEnd");
  ncclGroupEnd();
  plain("GroupStart");
  ncclGroupStart();
  ncclAllReduce(send_floats, receive_floats, 3000, ncclFloat32, ncclSum, c, 0);
  plain("GroupSimulateEnd");
  ncclGroupSimulateEnd(NULL);
  call("AllReduce", name, 1, 99, ncclSum, -1, 0, 0);
  check(ncclAllReduce(send_floats, receive_floats, 1, (ncclDataType_t)99, ncclSum, c, 0) == ncclInvalidArgument, "no such type");
  call("AllReduce", name, 2, ncclFloat32, ncclSum, -1, 0, 1);
  ncclAllReduceConfig(send_floats, receive_floats, 2, ncclFloat32, ncclSum, c, 0, NULL);
  ncclRedOp_t scaled;
  ncclRedOpCreatePreMulSum(&scaled, NULL, ncclFloat32, 1, c);
  call("AllReduce", name, 3, ncclFloat32, 7, -1, 0, 1);
  ncclAllReduce(send_floats, receive_floats, 3, ncclFloat32, scaled, c, 0);
  standinSynchronize(c);
}

static void splits(ncclComm_t c) {
  ncclComm_t half = NULL, again = NULL, none = NULL;
  ncclConfig_t config = {.size = sizeof config, .blocking = 1, .commName = "gradients"};
  tell("CommSplit half%d %d %d\n", rank % 2, (size + 1 - rank % 2) / 2, rank / 2);
  ncclCommSplit(c, rank % 2, rank, &half, &config);
  tell("CommSplit again %d %d\n", size, size - 1 - rank); /* in the other order */
  ncclCommSplit(c, 5, -rank, &again, NULL);
  plain("CommSplit");
  ncclCommSplit(c, rank == 0 ? -1 : 0, 0, &none, NULL);
  check((rank == 0) == (none == NULL), "no colour, no communicator");
  char name[16];
  snprintf(name, sizeof name, "half%d", rank % 2);
  call("AllReduce", name, 11, ncclFloat32, ncclSum, -1, 0, 1);
  ncclAllReduce(send_floats, receive_floats, 11, ncclFloat32, ncclSum, half, 0);
  call("AllGather", "again", 12, ncclInt64, -1, -1, 0, 1);
  ncclAllGather(longs, long_results, 12, ncclInt64, again, 0);
  standinSynchronize(half);
  standinSynchronize(again);
  destroy(half);
  destroy(again);
  if (none) destroy(none);
  tell("unused %s\n", none ? "1" : "0");
}

static void everything(void) {
  ncclComm_t c = world();
  collectives(c, "world");
  messages(c, "world");
  groups(c, "world");
  splits(c);
  destroy(c);
}

/* All ranks in one process and one thread. */
static void all_here(void) {
  ncclComm_t comms[2];
  const int devices[] = {3, 4};
  tell("CommInitAll all 2 0\n");
  ncclCommInitAll(comms, 2, devices);
  for (int i = 0; i < 2; ++i) {
    plain("GroupStart");
    ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      tell("on %d\n", r);
      call("AllReduce", "all", 100, ncclFloat32, ncclSum, -1, 0, 1);
      ncclAllReduce(send_floats, receive_floats + 100 * r, 100, ncclFloat32, ncclSum, comms[r], 0);
    }
    plain("GroupEnd");
    ncclGroupEnd();
  }
  for (int r = 0; r < 2; ++r) standinSynchronize(comms[r]);
  for (int r = 0; r < 2; ++r) destroy(comms[r]);
}

static void wait_for(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state), usleep(100);
}

/* Communicators made in a group, and two that NCCL makes in the background: of the second only NCCL knows size and rank. */
static void made_otherwise(void) {
  ncclComm_t a, b, later, child;
  plain("GroupStart");
  ncclGroupStart();
  tell("CommInitRank a %d %d\n", size, rank);
  ncclCommInitRank(&a, size, shared_id("a"), rank);
  ncclUniqueId ids[2] = {shared_id("b"), shared_id("b2")};
  tell("CommInitRankScalable b %d %d\n", size, rank);
  ncclCommInitRankScalable(&b, size, rank, 2, ids, NULL);
  plain("GroupEnd");
  ncclGroupEnd();
  call("AllReduce", "b", 21, ncclFloat32, ncclSum, -1, 0, 1);
  ncclAllReduce(send_floats, receive_floats, 21, ncclFloat32, ncclSum, b, 0);
  call("AllReduce", "a", 22, ncclFloat32, ncclSum, -1, 0, 1);
  ncclAllReduce(send_floats, receive_floats + 100, 22, ncclFloat32, ncclSum, a, 0);
  standinSynchronize(a);
  standinSynchronize(b);
  ncclConfig_t config = {.size = sizeof config, .blocking = 0, .commName = "background"};
  tell("CommInitRankConfig background %d %d\n", size, rank);
  check(ncclCommInitRankConfig(&later, size, shared_id("later"), rank, &config) == ncclInProgress, "in the background");
  wait_for(later);
  call("AllReduce", "background", 23, ncclFloat32, ncclSum, -1, 0, 1);
  check(ncclAllReduce(send_floats, receive_floats, 23, ncclFloat32, ncclSum, later, 0) == ncclInProgress,
        "launched in the background");
  standinSynchronize(later);
  config.commName = "child";
  tell("CommSplit child %d %d\n", size, size - 1 - rank); /* in the other order */
  check(ncclCommSplit(later, 0, -rank, &child, &config) == ncclInProgress, "split in the background");
  wait_for(child);
  call("AllGather", "child", 16, ncclInt64, -1, -1, 0, 1);
  ncclAllGather(longs, long_results, 16, ncclInt64, child, 0);
  call("Reduce", "child", 25, ncclInt32, ncclProd, 1, 0, 1);
  ncclReduce(ints, int_results, 25, ncclInt32, ncclProd, 1, child, 0);
  standinSynchronize(child);
  destroy(a);
  destroy(b);
  destroy(child);
  destroy(later);
}

static void until_killed(void) {
  ncclComm_t c = world();
  for (;;) {
    call("AllReduce", "world", 100, ncclFloat32, ncclSum, -1, 0, 1);
    ncclAllReduce(send_floats, receive_floats, 100, ncclFloat32, ncclSum, c, 0);
    standinSynchronize(c);
  }
}

/* The child of a fork leaves the parent's trace alone, and may not be traced itself. */
static void forking(void) {
  ncclComm_t c = world();
  call("AllReduce", "world", 100, ncclFloat32, ncclSum, -1, 0, 1);
  ncclAllReduce(send_floats, receive_floats, 100, ncclFloat32, ncclSum, c, 0);
  standinSynchronize(c);
  const pid_t child = fork();
  if (child == 0) {
    ncclGroupStart();
    ncclGroupEnd();
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  check(status == 0, "child");
  destroy(c);
}

/* Calls that the wrappers do not see, on a communicator that they saw being made. */
static void bypass(void) {
  ncclComm_t c = world();
  void* nccl = dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY);
  ncclResult_t (*hidden)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
  *(void**)&hidden = dlsym(nccl, "ncclAllReduce");
  for (int i = 0; i < 6; ++i) {
    call("AllReduce", "world", 100, ncclFloat32, i % 2 ? -1 : (int)ncclSum, -1, 0, 1);
    (i % 2 ? hidden : ncclAllReduce)(send_floats, receive_floats, 100, ncclFloat32, ncclSum, c, 0);
  }
  standinSynchronize(c);
  destroy(c);
}

static void many(int calls) {
  ncclComm_t c = world();
  for (int i = 0; i < calls; ++i) {
    call("AllReduce", "world", 100, ncclFloat32, ncclSum, -1, 0, 1);
    ncclAllReduce(send_floats, receive_floats, 100, ncclFloat32, ncclSum, c, 0);
    if (i % 100 == 99) standinSynchronize(c);
  }
  standinSynchronize(c);
  destroy(c);
}

__attribute__((visibility("default"))) int run(int argc, char** argv) {
  const char* program = argc > 1 ? argv[1] : "";
  rank = getenv("RANK") ? atoi(getenv("RANK")) : 0;
  size = getenv("WORLD_SIZE") ? atoi(getenv("WORLD_SIZE")) : 1;
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", getenv("TRAFFIC_LOG"), rank);
  told = fopen(path, "w");
  if (!told) return 3;
  fill();
  if (strcmp(program, "everything") == 0)
    everything();
  else if (strcmp(program, "all_here") == 0)
    all_here();
  else if (strcmp(program, "made_otherwise") == 0)
    made_otherwise();
  else if (strcmp(program, "until_killed") == 0)
    until_killed();
  else if (strcmp(program, "forking") == 0)
    forking();
  else if (strcmp(program, "bypass") == 0)
    bypass();
  else if (strcmp(program, "many") == 0)
    many(argc > 2 ? atoi(argv[2]) : 1000);
  else if (strcmp(program, "nothing") != 0)
    return 2;
  fclose(told);
  return wrong != 0;
}
