/* What the stand-in's parts share. */
#ifndef STANDIN_INTERNAL_H
#define STANDIN_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "standin.h"

#ifndef STANDIN_MAKER /* several NCCL libraries in one process: none takes communicators of another */
#define STANDIN_MAKER 1
#endif

enum { most_ranks = 8, slot_bytes = 1 << 17, channels = 2 };
typedef enum { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, Send, Recv, functions } Function;

/* Of the ranks of a communicator; all zeros at first. */
typedef struct {
  atomic_int arrived, turn;           /* barrier of the "GPUs" */
  atomic_int host_arrived, host_turn; /* barrier of the hosts */
  int colors[most_ranks], keys[most_ranks];
  atomic_int full[most_ranks][most_ranks]; /* mailbox from, to */
  char mail[most_ranks][most_ranks][slot_bytes / 8];
  char slot[most_ranks][slot_bytes];
} Shared;

typedef struct Task {
  Function function;
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  int op, peer;
  struct ncclComm* comm;
  void* group_call;
  void* call;
  void* event;
  atomic_int* done;
  struct Task* next;
} Task;

struct ncclComm {
  int maker;
  Shared* shared;
  char path[512];
  uint64_t hash;
  int size, rank, device, children;
  bool blocking;
  _Atomic ncclResult_t state;
  char name[64];
  void* profiler;
  uint64_t sequence[functions];
  pthread_t worker;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  Task* first; /* the stream */
  Task* last;
  int unfinished;
  bool stop, behind;
  uint64_t last_times[2];
};

void standinSetDevice(int number); /* of libcuda.so.1 */

extern _Thread_local int group_depth;

/* engine.c */
void start_worker(ncclComm_t comm);
void stop_worker(ncclComm_t comm);
void submit(ncclComm_t comm, Task* task);
size_t type_bytes(ncclDataType_t type);
uint64_t now(void);
void wait_for(atomic_int* value, int wanted);
void meet(atomic_int* arrived, atomic_int* turn, int size);

/* profiler.c: as ncclProfilerStart...Event; each does nothing where no plugin is loaded or the event is not wanted. */
void profiler_init(ncclComm_t comm);
void profiler_finalize(ncclComm_t comm);
void* profiler_group_call(ncclComm_t comm, int depth);
void* profiler_call(Task* task, void* group);
void* profiler_group(ncclComm_t comm);
void profiler_task(Task* task, void* group);
void profiler_stop(void* event);
void* profiler_channel(Task* task, int channel, uint64_t gpu_ns);
void profiler_channel_stop(void* event, uint64_t gpu_ns);
void profiler_proxy(Task* task, int channel);
#endif
