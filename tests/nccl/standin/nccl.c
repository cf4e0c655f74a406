/* The stand-in's functions: groups, communicators, operations. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

_Thread_local int group_depth;
static _Thread_local Task* tasks; /* of the group, newest first */
static _Thread_local void* group_call;

/* Work on communicators that a group does in threads of its own when it ends. */
typedef struct Job {
  ncclComm_t comm, parent;
  ncclComm_t* where;
  int color, key;
  bool early; /* *where is set already */
  pthread_t thread;
  struct Job* next;
} Job;
static _Thread_local Job* jobs;

static void map(ncclComm_t c) {
  const int file = open(c->path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) abort();
  c->shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (c->shared == MAP_FAILED) abort();
  close(file);
}

static uint64_t hash_of(const char* bytes, size_t count) {
  uint64_t hash = 5381;
  for (size_t i = 0; i < count; ++i) hash = hash * 33 ^ (uint64_t)bytes[i];
  return hash;
}

static void choose_child(Job* job) {
  ncclComm_t p = job->parent, c = job->comm;
  Shared* s = p->shared;
  s->colors[p->rank] = job->color;
  s->keys[p->rank] = job->key;
  meet(&s->host_arrived, &s->host_turn, p->size);
  c->size = c->rank = 0;
  for (int r = 0; r < p->size; ++r) {
    if (s->colors[r] != job->color) continue;
    ++c->size;
    c->rank += s->keys[r] < job->key || (s->keys[r] == job->key && r < p->rank);
  }
  snprintf(c->path, sizeof c->path, "%.400s.%d.%d", p->path, p->children, job->color);
  meet(&s->host_arrived, &s->host_turn, p->size);
  c->hash = hash_of(c->path, strlen(c->path));
}

static void* run_job(void* opaque) {
  Job* job = opaque;
  ncclComm_t c = job->comm;
  if (job->parent) choose_child(job);
  if (job->parent && job->color < 0) {
    free(c);
    return NULL;
  }
  map(c);
  standinSetDevice(c->device);
  profiler_init(c);
  start_worker(c);
  meet(&c->shared->host_arrived, &c->shared->host_turn, c->size);
  if (!job->early) *job->where = c;
  atomic_store(&c->state, ncclSuccess);
  return NULL;
}

static void* run_and_free(void* opaque) {
  run_job(opaque);
  free(opaque);
  return NULL;
}

/* At once, when the group ends, or in the background. */
static ncclResult_t begin_job(Job job) {
  Job* kept = malloc(sizeof job);
  *kept = job;
  job.comm->state = ncclInProgress;
  if (!job.comm->blocking) {
    *job.where = job.comm;
    kept->early = true;
    pthread_create(&kept->thread, NULL, run_and_free, kept);
    pthread_detach(kept->thread);
    return ncclInProgress;
  }
  if (group_depth == 0) {
    run_and_free(kept);
    return ncclSuccess;
  }
  kept->next = jobs;
  jobs = kept;
  return ncclSuccess;
}

static ncclComm_t new_comm(const ncclConfig_t* config) {
  ncclComm_t c = calloc(1, sizeof *c);
  c->maker = STANDIN_MAKER;
  c->blocking = !config || config->blocking != 0;
  if (config && config->commName) snprintf(c->name, sizeof c->name, "%s", config->commName);
  return c;
}

static ncclResult_t init(ncclComm_t* comm, int size, const ncclUniqueId* id, int rank, const ncclConfig_t* config, int device) {
  if (!comm || size < 1 || size > most_ranks || rank < 0 || rank >= size) return ncclInvalidArgument;
  ncclComm_t c = new_comm(config);
  c->size = size;
  c->rank = rank;
  c->device = device;
  c->hash = hash_of(id->internal, sizeof id->internal);
  const char* folder = getenv("STANDIN_FOLDER");
  snprintf(c->path, sizeof c->path, "%s/comm.%016llx", folder ? folder : "/tmp", (unsigned long long)c->hash);
  return begin_job((Job){.comm = c, .where = comm});
}

static int own_device(int rank) {
  const char* local = getenv("LOCAL_RANK");
  return local ? atoi(local) : rank;
}

ncclResult_t ncclGetVersion(int* version) {
  const char* told = getenv("STANDIN_VERSION");
  *version = told ? atoi(told) : 22907;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%d %llu", (int)getpid(), (unsigned long long)now());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return init(comm, size, &id, rank, NULL, own_device(rank));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return init(comm, size, &id, rank, config, own_device(rank));
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int count, ncclUniqueId* ids, ncclConfig_t* config) {
  return count < 1 ? ncclInvalidArgument : init(comm, size, ids, rank, config, own_device(rank));
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclGroupStart();
  for (int i = 0; i < count; ++i) init(&comms[i], count, &id, i, NULL, devices ? devices[i] : i);
  return ncclGroupEnd();
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  ncclComm_t c = new_comm(config);
  c->device = comm->device;
  ++comm->children;
  *made = NULL;
  return begin_job((Job){.comm = c, .parent = comm, .where = made, .color = color, .key = key});
}

static ncclResult_t end(ncclComm_t c) {
  if (!c) return ncclSuccess;
  stop_worker(c);
  profiler_finalize(c);
  munmap(c->shared, sizeof(Shared));
  free(c);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  standinSynchronize(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return end(comm);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = atomic_load(&comm->state);
  return ncclSuccess;
}

static bool is_ready(ncclComm_t comm) {
  if (atomic_load(&comm->state) == ncclSuccess) return true;
  fprintf(stderr, "NCCL WARN communicator used before the previous operation returned\n"); /* and kept as its last error */
  return false;
}

#define ASK(name, member)                                    \
  ncclResult_t ncclComm##name(ncclComm_t comm, int* value) { \
    if (comm->maker != STANDIN_MAKER) abort();               \
    if (!is_ready(comm)) return ncclInvalidUsage;            \
    *value = comm->member;                                   \
    return ncclSuccess;                                      \
  }
ASK(Count, size)
ASK(UserRank, rank)
ASK(CuDevice, device)

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, int residence, ncclComm_t comm) {
  (void)scalar, (void)type, (void)residence, (void)comm;
  *op = (ncclRedOp_t)(ncclAvg + 3);
  return ncclSuccess;
}

/* Launches what a group has gathered on one communicator: large collectives first, then messages, sends before receives. */
static int order(const Task* t) {
  return t->function < Send ? 0 : t->function == Send ? 1 : 2;
}

static bool goes_before(const Task* a, const Task* b) {
  if (order(a) != order(b)) return order(a) < order(b);
  return order(a) == 0 && a->count * type_bytes(a->type) > b->count * type_bytes(b->type);
}

static Task* sorted(Task* newest_first) {
  Task *oldest_first = NULL, *done = NULL;
  while (newest_first) {
    Task* t = newest_first;
    newest_first = t->next;
    t->next = oldest_first;
    oldest_first = t;
  }
  while (oldest_first) {
    Task* t = oldest_first;
    oldest_first = t->next;
    Task** place = &done;
    while (*place && !goes_before(t, *place)) place = &(*place)->next;
    t->next = *place;
    *place = t;
  }
  return done;
}

static void launch(Task* all) {
  while (all) {
    ncclComm_t c = all->comm;
    Task *mine = NULL, **mine_end = &mine, *others = NULL, **others_end = &others;
    for (Task* next; all; all = next) {
      next = all->next;
      all->next = NULL;
      if (all->comm == c)
        *mine_end = all, mine_end = &all->next;
      else
        *others_end = all, others_end = &all->next;
    }
    void* group = profiler_group(c);
    for (Task* t = mine; t; t = t->next) profiler_task(t, group);
    void* events[256];
    int count = 0;
    for (Task *t = mine, *next; t; t = next) {
      next = t->next;
      events[count++] = t->event;
      submit(c, t);
    }
    for (int i = 0; i < count; ++i) profiler_stop(events[i]);
    profiler_stop(group);
    all = others;
  }
}

typedef struct {
  Task* tasks;
  void* group_call;
} Launch;

static void* launch_later(void* opaque) {
  Launch* l = opaque;
  launch(l->tasks);
  profiler_stop(l->group_call);
  free(l);
  return NULL;
}

static void run_jobs(void) {
  for (Job* j = jobs; j; j = j->next) pthread_create(&j->thread, NULL, run_job, j);
  while (jobs) {
    Job* j = jobs;
    jobs = j->next;
    pthread_join(j->thread, NULL);
    free(j);
  }
}

static ncclResult_t end_group(bool simulated) {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth) return ncclSuccess;
  run_jobs();
  Task* mine = sorted(tasks);
  void* call = group_call;
  tasks = NULL;
  group_call = NULL;
  if (simulated || !mine || mine->comm->blocking) {
    if (!simulated) launch(mine);
    for (Task* next; simulated && mine; mine = next) next = mine->next, free(mine);
    profiler_stop(call);
    return ncclSuccess;
  }
  Launch* l = malloc(sizeof *l);
  *l = (Launch){mine, call};
  pthread_t thread;
  pthread_create(&thread, NULL, launch_later, l);
  pthread_join(thread, NULL); /* so that the order of groups stays; the events come from another thread all the same */
  return ncclInProgress;
}

ncclResult_t ncclGroupStart(void) {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  return end_group(false);
}

ncclResult_t ncclGroupSimulateEnd(void* info) {
  (void)info;
  return end_group(true);
}

/* Within a group. */
static void append(Task what) {
  Task* t = malloc(sizeof *t);
  *t = what;
  if (!group_call) group_call = profiler_group_call(t->comm, group_depth);
  t->call = profiler_call(t, group_call);
  profiler_stop(t->call);
  t->next = tasks;
  tasks = t;
}

static ncclResult_t add(Task what) {
  if (!what.comm || !type_bytes(what.type)) return ncclInvalidArgument;
  ++group_depth;
  append(what);
  return end_group(false);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  (void)stream;
  return add((Task){AllReduce, send, receive, count, type, (int)op, 0, comm});
}

ncclResult_t ncclAllReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                 ncclComm_t comm, cudaStream_t stream, const void* config) {
  (void)config;
  return ncclAllReduce(send, receive, count, type, op, comm, stream);
}

ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  (void)stream;
  return add((Task){Reduce, send, receive, count, type, (int)op, root, comm});
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  (void)stream;
  return add((Task){Broadcast, send, receive, count, type, -1, root, comm});
}

ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  (void)stream;
  return add((Task){AllGather, send, receive, count, type, -1, 0, comm});
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  (void)stream;
  return add((Task){ReduceScatter, send, receive, count, type, (int)op, 0, comm});
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  (void)stream;
  return add((Task){Send, send, NULL, count, type, -1, peer, comm});
}

ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  (void)stream;
  return add((Task){Recv, NULL, receive, count, type, -1, peer, comm});
}

/* Made of messages, which the profiler sees as such. */
static ncclResult_t exchange(const void* send, void* receive, size_t count, ncclDataType_t type, int from, int to, ncclComm_t c) {
  const size_t unit = count * type_bytes(type);
  ++group_depth;
  for (int r = 0; r < c->size; ++r)
    if (to < 0 || r == to || from == c->rank)
      if (from < 0 || from == c->rank)
        append((Task){Send, (const char*)send + (to < 0 ? unit * (size_t)r : 0), NULL, count, type, -1, r, c});
  for (int r = 0; r < c->size; ++r)
    if ((to < 0 || to == c->rank) && (from < 0 || r == from))
      append((Task){Recv, NULL, (char*)receive + (from < 0 ? unit * (size_t)r : 0), count, type, -1, r, c});
  return end_group(false);
}

ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  (void)stream;
  return exchange(send, receive, count, type, -1, -1, comm);
}

ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  (void)stream;
  return exchange(send, receive, count, type, -1, root, comm);
}

ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  (void)stream;
  return exchange(send, receive, count, type, root, -1, comm);
}
