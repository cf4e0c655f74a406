/* A profiler plugin for the tests: counts what it is told, of each kind of event, and whether parents are its own handles.
 * Built with -DVERSION=4, 5 or 6. As NCCL's example of a plugin it sets the mask for the first communicator alone. When the last
 * ends it writes a line to NEXT_PLUGIN_LOG.<pid>. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { coll = 2, p2p = 4, proxy_op = 8, magic = 0x5eed };
typedef struct {
  int magic, type;
} Event;

static atomic_int started[16], stopped, recorded, strangers, contexts;

static int init(int* mask, void** context) {
  const char* wanted = getenv("NEXT_PLUGIN_MASK");
  if (contexts == 0) *mask = wanted ? atoi(wanted) : 1 | 2 | 4 | 8 | 16 | 32 | 64 | 256 | 512 | 1024;
  *context = &contexts;
  ++contexts;
  return 0;
}

static int init4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks, int rank, void* logger) {
  (void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)logger;
  return init(mask, context);
}

static int init5(void** context, uint64_t hash, int* mask, const char* name, int nodes, int ranks, int rank, void* logger) {
  (void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)logger;
  return init(mask, context);
}

typedef struct {
#if VERSION == 4
  uint8_t type;
#else
  uint64_t type;
#endif
  void* parent;
  int rank;
  union {
    int pid;
    uint64_t room[11];
  };
} Told;

static int start(void* context, void** handle, void* opaque) {
  Told* told = opaque;
  Event* event = malloc(sizeof *event);
  *event = (Event){magic, (int)told->type};
  if (context != &contexts) ++strangers;
  if (told->type == proxy_op && told->pid != getpid()) ++strangers;
  if (told->parent && ((Event*)told->parent)->magic != magic) ++strangers;
  if (!told->parent && (told->type == 64 || told->type == 16)) ++strangers;
#if VERSION == 4
  if ((told->type == coll || told->type == p2p) && (!told->parent || ((Event*)told->parent)->type != 1)) ++strangers;
#endif
  int kind = 0;
  while ((told->type >> kind) > 1) ++kind;
  ++started[kind];
  *handle = event;
  return 0;
}

static int stop(void* handle) {
  if (((Event*)handle)->magic != magic) ++strangers;
  ++stopped;
  return 0; /* never freed: others may have it as their parent */
}

static int record(void* handle, int state, void* arguments) {
  if (((Event*)handle)->magic != magic || !arguments) ++strangers;
  (void)state;
  ++recorded;
  return 0;
}

static int finalize(void* context) {
  (void)context;
  if (--contexts) return 0;
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", getenv("NEXT_PLUGIN_LOG"), (int)getpid());
  FILE* log = fopen(path, "w");
  if (!log) return 0;
  for (int i = 0; i < 16; ++i) fprintf(log, "%d ", started[i]);
  fprintf(log, "%d %d %d\n", stopped, recorded, strangers);
  fclose(log);
  return 0;
}

typedef struct {
  const char* name;
  void* init;
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*record)(void*, int, void*);
  int (*finalize)(void*);
} Plugin;

__attribute__((visibility("default"))) Plugin
#if VERSION == 4
    ncclProfiler_v4 = {"next", init4, start, stop, record, finalize};
#elif VERSION == 5
    ncclProfiler_v5 = {"next", init5, start, stop, record, finalize};
#else
    ncclProfiler_v6 = {"next", init5, start, stop, record, finalize};
#endif
void* unused = (void*)init4;
void* unused_too = (void*)init5;
