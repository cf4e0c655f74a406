/* The side of NCCL of the profiler interface: loads the plugin and tells it events, in versions 4 to 6. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum {
  group = 1,
  coll = 2,
  p2p = 4,
  proxy_op = 8,
  proxy_step = 16,
  proxy_control = 32,
  kernel = 64,
  group_api = 256,
  coll_api = 512,
  p2p_api = 1024
};
enum { below_coll = coll | p2p | proxy_op | proxy_step | kernel };
static const char* names[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter", "Send", "Recv"};
static const char* types[] = {"ncclInt8",    "Unknown",     "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
                              "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

typedef struct {
  uint64_t sequence;
  const char* func;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* type;
  uint8_t channels, warps;
  const char *algorithm, *protocol;
} Coll;
typedef struct {
  const char* func;
  void* buffer;
  const char* type;
  size_t count;
  int peer;
  uint8_t channels;
} P2p;
typedef struct {
  int pid;
  uint8_t channel;
  int peer, steps, chunk, is_send;
} ProxyOp;
typedef struct {
  uint8_t channel;
  uint64_t timer;
} KernelCh;

typedef struct {
  uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy;
    int step;
    KernelCh kernel;
  };
} Event4;

typedef struct {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;
    } group_api;
    struct {
      const char* func;
      size_t count;
      const char* type;
      int root;
      void* stream;
      bool captured;
    } coll_api;
    struct {
      const char* func;
      size_t count;
      const char* type;
      void* stream;
      bool captured;
    } p2p_api;
    struct {
      Coll coll;
      void* group;
    } coll;
    struct {
      P2p p2p;
      void* group;
    } p2p;
    ProxyOp proxy;
    int step;
    KernelCh kernel;
    char room[88];
  };
} Event6;

typedef struct {
  const char* name;
  int (*init)();
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*record)(void*, int, void*);
  int (*finalize)(void*);
} Plugin;

static Plugin* plugin;
static int version, mask;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
  const char* name = getenv("NCCL_PROFILER_PLUGIN");
  const char* newest = getenv("STANDIN_PROFILER");
  void* library = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
  version = newest ? atoi(newest) : 6;
  if (!library) return;
  if (version == 7) { /* a future NCCL that has given the older ones up */
    plugin = dlsym(library, "ncclProfiler_v7");
    return;
  }
  for (; version >= 4; --version) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
    if ((plugin = dlsym(library, symbol))) return;
  }
}

void profiler_init(ncclComm_t c) {
  pthread_once(&once, load);
  if (!plugin) return;
  if (version == 4)
    plugin->init(&c->profiler, &mask, c->name, c->hash, 1, c->size, c->rank, NULL);
  else
    plugin->init(&c->profiler, c->hash, &mask, c->name, 1, c->size, c->rank, NULL);
}

static void* start_in(void* context, int wanted, void* event) {
  void* handle = NULL;
  if (plugin && context && (mask & wanted)) plugin->start(context, &handle, event);
  return handle;
}

static void* start(ncclComm_t c, int wanted, void* event) {
  return start_in(c->profiler, wanted, event);
}

void profiler_stop(void* event) {
  if (event) plugin->stop(event);
}

/* The proxy thread, which a child may share, goes on with the context of the communicator that made it. */
void profiler_finalize(ncclComm_t c) {
  if (plugin && c->profiler) plugin->finalize(c->profiler);
  Event4 old = {.type = proxy_control};
  Event6 e = {.type = proxy_control};
  profiler_stop(start(c, proxy_control, version == 4 ? (void*)&old : (void*)&e));
  c->profiler = NULL;
}

void* profiler_group_call(ncclComm_t c, int depth) {
  Event6 e = {.type = group_api, .group_api = {false, depth}};
  return version >= 5 ? start(c, group_api | coll_api | p2p_api | group | below_coll, &e) : NULL;
}

void* profiler_call(Task* t, void* parent) {
  if (version < 5) return NULL;
  Event6 e = {.type = t->function < Send ? coll_api : p2p_api, .parent = parent};
  if (t->function < Send) {
    e.coll_api.func = names[t->function];
    e.coll_api.count = t->count;
    e.coll_api.type = types[t->type];
    e.coll_api.root = t->peer;
  } else {
    e.p2p_api.func = names[t->function];
    e.p2p_api.count = t->count;
    e.p2p_api.type = types[t->type];
  }
  return start(t->comm, coll_api | p2p_api | below_coll, &e);
}

void* profiler_group(ncclComm_t c) {
  Event4 old = {.type = group};
  Event6 e = {.type = group};
  return start(c, group | below_coll, version == 4 ? (void*)&old : (void*)&e);
}

static Coll describe_coll(const Task* t) {
  Coll d = {t->comm->sequence[t->function],
            names[t->function],
            t->send,
            t->receive,
            t->count,
            t->peer,
            types[t->type],
            channels,
            16,
            t->count > 1000 ? "RING" : "TREE",
            t->count > 1000 ? "SIMPLE" : "LL"};
  if (t->function == AllGather || t->function == Broadcast) { /* in bytes */
    d.count *= type_bytes(t->type);
    d.type = "ncclInt8";
  }
  return d;
}

void profiler_task(Task* t, void* parent) {
  Event4 old = {.type = t->function < Send ? coll : p2p, .parent = parent, .rank = t->comm->rank};
  Event6 e = {.type = old.type, .parent = t->call, .rank = old.rank};
  P2p point = {
      names[t->function], t->function == Send ? (void*)t->send : t->receive, types[t->type], t->count, t->peer, channels};
  if (t->function < Send) {
    old.coll = e.coll.coll = describe_coll(t);
    e.coll.group = parent;
    ++t->comm->sequence[t->function];
  } else {
    old.p2p = e.p2p.p2p = point;
    old.p2p.channels = 77; /* newer NCCL leave it unset for version 4 */
    e.p2p.group = parent;
  }
  t->event = start(t->comm, below_coll, version == 4 ? (void*)&old : (void*)&e);
}

void* profiler_channel(Task* t, int channel, uint64_t gpu_ns) {
  Event4 old = {.type = kernel, .parent = t->event, .kernel = {(uint8_t)channel, gpu_ns}};
  Event6 e = {.type = kernel, .parent = t->event, .kernel = {(uint8_t)channel, gpu_ns}};
  return start(t->comm, kernel, version == 4 ? (void*)&old : (void*)&e);
}

void profiler_channel_stop(void* event, uint64_t gpu_ns) {
  if (!event) return;
  plugin->record(event, 22, &gpu_ns);
  plugin->stop(event);
}

/* A proxy operation of this process with one step, and one of another process, whose context and parent must not be touched.
 * As in NCCL, an operation without a handle has no steps. */
void profiler_proxy(Task* t, int channel) {
  for (int foreign = 0; foreign < 2; ++foreign) {
    const ProxyOp operation = {(int)getpid() + foreign, (uint8_t)channel, t->peer, 1, 4096, t->function == Send};
    void* context = foreign ? (void*)0x7000dead0000 : t->comm->profiler;
    void* parent = foreign ? (void*)16 : t->event;
    Event4 old = {.type = proxy_op, .parent = parent, .rank = t->comm->rank, .proxy = operation};
    Event6 e = {.type = proxy_op, .parent = parent, .rank = t->comm->rank, .proxy = operation};
    void* event = start_in(context, proxy_op | proxy_step, version == 4 ? (void*)&old : (void*)&e);
    Event4 old_step = {.type = proxy_step, .parent = event};
    Event6 step = {.type = proxy_step, .parent = event};
    void* inner = !event ? NULL : start_in(context, proxy_step, version == 4 ? (void*)&old_step : (void*)&step);
    size_t bytes = 4096;
    if (inner) plugin->record(inner, 9, &bytes);
    profiler_stop(inner);
    profiler_stop(event);
  }
}
