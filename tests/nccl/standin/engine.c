/* The "GPU": a thread for each communicator that does its work in order, and reports the kernels as NCCL's proxy thread does. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

enum { gpu_offset_ns = 1234567890 }; /* the GPU's clock is another one */

static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

size_t type_bytes(ncclDataType_t type) {
  return (unsigned)type < ncclNumTypes ? sizes[type] : 0;
}

uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void wait_for(atomic_int* value, int wanted) {
  for (int turns = 0; atomic_load(value) != wanted; ++turns) turns < 200 ? sched_yield() : usleep(100);
}

void meet(atomic_int* arrived, atomic_int* turn, int size) {
  const int mine = atomic_load(turn);
  if (atomic_fetch_add(arrived, 1) + 1 == size) {
    atomic_store(arrived, 0);
    atomic_store(turn, mine + 1);
  } else {
    wait_for(turn, mine + 1);
  }
}

#define COMBINE(type, value)                               \
  {                                                        \
    type* a = into;                                        \
    const type* b = from;                                  \
    for (size_t i = 0; i < count; ++i)                     \
      a[i] = op == ncclProd  ? a[i] * b[i]                 \
             : op == ncclMax ? (a[i] > b[i] ? a[i] : b[i]) \
             : op == ncclMin ? (a[i] < b[i] ? a[i] : b[i]) \
                             : a[i] + b[i];                \
    break;                                                 \
  }

static void combine(void* into, const void* from, size_t count, ncclDataType_t type, int op) {
  switch (type) {
    case ncclFloat32:
      COMBINE(float, 0)
    case ncclFloat64:
      COMBINE(double, 0)
    case ncclInt32:
      COMBINE(int32_t, 0)
    default:
      COMBINE(uint8_t, 0)
  }
}

/* Whatever the function: all put in, all meet, each takes what it gets. */
static void collective(Task* t) {
  ncclComm_t c = t->comm;
  Shared* s = c->shared;
  const size_t unit = t->count * type_bytes(t->type);
  const size_t put = t->function == ReduceScatter ? unit * (size_t)c->size : unit;
  if (t->function != Broadcast || c->rank == t->peer) memcpy(s->slot[c->rank], t->send, put);
  meet(&s->arrived, &s->turn, c->size);
  if (t->function == Broadcast) memcpy(t->receive, s->slot[t->peer], unit);
  for (int r = 0; t->function == AllGather && r < c->size; ++r) memcpy((char*)t->receive + unit * (size_t)r, s->slot[r], unit);
  const bool reduces = t->function == AllReduce || t->function == ReduceScatter || (t->function == Reduce && c->rank == t->peer);
  const size_t from = t->function == ReduceScatter ? unit * (size_t)c->rank : 0;
  for (int r = 0; reduces && r < c->size; ++r) {
    if (r == 0)
      memcpy(t->receive, s->slot[0] + from, unit);
    else
      combine(t->receive, s->slot[r] + from, t->count, t->type, t->op);
  }
  for (size_t i = 0; reduces && t->op == ncclAvg && t->type == ncclFloat32 && i < t->count; ++i)
    ((float*)t->receive)[i] /= (float)c->size;
  meet(&s->arrived, &s->turn, c->size);
}

static void point_to_point(Task* t) {
  ncclComm_t c = t->comm;
  Shared* s = c->shared;
  const int from = t->function == Send ? c->rank : t->peer, to = t->function == Send ? t->peer : c->rank;
  const size_t bytes = t->count * type_bytes(t->type);
  wait_for(&s->full[from][to], t->function == Recv);
  if (t->function == Send)
    memcpy(s->mail[from][to], t->send, bytes);
  else
    memcpy(t->receive, s->mail[from][to], bytes);
  atomic_store(&s->full[from][to], t->function == Send);
}

static void note_truth(Task* t, uint64_t begin, uint64_t end) {
  const char* path = getenv("STANDIN_LOG");
  if (!path) return;
  char name[600];
  snprintf(name, sizeof name, "%s.%d", path, (int)getpid());
  FILE* log = fopen(name, "a");
  if (!log) return;
  fprintf(log, "%d %d %llu %llu %llu\n", (int)t->function, t->comm->rank, (unsigned long long)begin, (unsigned long long)end,
          (unsigned long long)now());
  fclose(log);
}

/* STANDIN_BEHIND: after a message the times of the kernel before are reported, as some versions of NCCL do. */
static void fall_behind(Task* t, uint64_t* begin, uint64_t* end) {
  ncclComm_t c = t->comm;
  const uint64_t times[2] = {*begin, *end};
  if (c->behind) *begin = c->last_times[0], *end = c->last_times[1];
  memcpy(c->last_times, times, sizeof times);
  if (t->function >= Send && getenv("STANDIN_BEHIND")) c->behind = true;
}

static void run_kernel(Task* t) {
  const uint64_t begin = now();
  void* events[channels];
  t->function < Send ? collective(t) : point_to_point(t);
  const uint64_t end = now();
  uint64_t told_begin = begin, told_end = end;
  fall_behind(t, &told_begin, &told_end);
  for (int c = 0; c < channels; ++c) { /* the second channel begins later and ends earlier */
    profiler_proxy(t, c);
    events[c] = profiler_channel(t, c, told_begin + gpu_offset_ns + (uint64_t)c);
  }
  for (int c = 0; c < channels; ++c) profiler_channel_stop(events[c], told_end + gpu_offset_ns - (uint64_t)c);
  note_truth(t, begin, end);
  if (t->comm->behind) usleep(3000); /* so that it shows */
}

static void* work(void* opaque) {
  ncclComm_t c = opaque;
  pthread_mutex_lock(&c->mutex);
  for (;;) {
    while (!c->first && !c->stop) pthread_cond_wait(&c->changed, &c->mutex);
    if (!c->first) break;
    Task* t = c->first;
    c->first = t->next;
    if (!c->first) c->last = NULL;
    pthread_mutex_unlock(&c->mutex);
    run_kernel(t);
    free(t);
    pthread_mutex_lock(&c->mutex);
    --c->unfinished;
    pthread_cond_broadcast(&c->changed);
  }
  pthread_mutex_unlock(&c->mutex);
  return NULL;
}

void start_worker(ncclComm_t c) {
  pthread_mutex_init(&c->mutex, NULL);
  pthread_cond_init(&c->changed, NULL);
  pthread_create(&c->worker, NULL, work, c);
}

void stop_worker(ncclComm_t c) {
  pthread_mutex_lock(&c->mutex);
  c->stop = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->mutex);
  pthread_join(c->worker, NULL);
}

void submit(ncclComm_t c, Task* t) {
  pthread_mutex_lock(&c->mutex);
  t->next = NULL;
  if (c->last)
    c->last->next = t;
  else
    c->first = t;
  c->last = t;
  ++c->unfinished;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->mutex);
}

void standinSynchronize(ncclComm_t c) {
  if (c->maker != STANDIN_MAKER) abort();
  pthread_mutex_lock(&c->mutex);
  while (c->unfinished) pthread_cond_wait(&c->changed, &c->mutex);
  pthread_mutex_unlock(&c->mutex);
}
