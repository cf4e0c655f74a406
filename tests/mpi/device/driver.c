#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { attach_global = 1, primary_turn = 0, created_turn = 1, pool_turn = 2, device_turns = 3, host_turns = 2 };

static struct {
  CUresult (*init)(unsigned);
  CUresult (*mem_alloc)(CUdeviceptr*, size_t), (*mem_free)(CUdeviceptr);
  CUresult (*mem_alloc_managed)(CUdeviceptr*, size_t, unsigned);
} cuda;

static struct {
  CUresult (*mem_alloc_async)(CUdeviceptr*, size_t, void*);
  CUresult (*mem_alloc_host)(void**, size_t), (*mem_free_host)(void*);
  CUresult (*copy_in)(CUdeviceptr, const void*, size_t), (*copy_out)(void*, CUdeviceptr, size_t);
  CUresult (*synchronize)(void*);
  CUresult (*retain_primary)(void**, int), (*create)(void**, unsigned, int);
  CUresult (*push)(void*), (*pop)(void**), (*get_current)(void**);
  void *primary, *created;
} real;

static struct {
  void (*fail)(enum standin_step), (*set)(CUdeviceptr, const void*, size_t), (*get)(CUdeviceptr, void*, size_t);
  int (*depth)(void), (*count)(enum standin_call);
  size_t (*written)(CUdeviceptr, size_t);
} standin;

static void must(CUresult result, const char* what) {
  if (result) exit(fprintf(stderr, "the CUDA driver: error %d of %s\n", result, what));
}

/* Fills a pointer to a function. */
static void take(void* handle, const char* name, void* pointer) {
  void* found = dlsym(handle, name);
  if (!found) exit(fprintf(stderr, "no %s\n", name));
  memcpy(pointer, &found, sizeof found);
}

static void load_standin(void* handle) {
  take(handle, "standin_fail", &standin.fail);
  take(handle, "standin_set", &standin.set);
  take(handle, "standin_get", &standin.get);
  take(handle, "standin_depth", &standin.depth);
  take(handle, "standin_count", &standin.count);
  take(handle, "standin_written", &standin.written);
}

static void load_real(void* handle) {
  take(handle, "cuMemAllocAsync", &real.mem_alloc_async);
  take(handle, "cuMemAllocHost_v2", &real.mem_alloc_host);
  take(handle, "cuMemFreeHost", &real.mem_free_host);
  take(handle, "cuMemcpyHtoD_v2", &real.copy_in);
  take(handle, "cuMemcpyDtoH_v2", &real.copy_out);
  take(handle, "cuStreamSynchronize", &real.synchronize);
  take(handle, "cuDevicePrimaryCtxRetain", &real.retain_primary);
  take(handle, "cuCtxCreate_v2", &real.create);
  take(handle, "cuCtxPushCurrent_v2", &real.push);
  take(handle, "cuCtxPopCurrent_v2", &real.pop);
  take(handle, "cuCtxGetCurrent", &real.get_current);
  void* current;
  must(real.retain_primary(&real.primary, 0), "cuDevicePrimaryCtxRetain");
  must(real.create(&real.created, 0, 0), "cuCtxCreate");
  must(real.pop(&current), "cuCtxPopCurrent");
}

void load_driver(void) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) exit(fprintf(stderr, "%s\n", dlerror()));
  take(handle, "cuInit", &cuda.init);
  take(handle, "cuMemAlloc_v2", &cuda.mem_alloc);
  take(handle, "cuMemAllocManaged", &cuda.mem_alloc_managed);
  take(handle, "cuMemFree_v2", &cuda.mem_free);
  must(cuda.init(0), "cuInit");
  if (dlsym(handle, "standin_set"))
    load_standin(handle);
  else
    load_real(handle);
}

int driver_is_real(void) {
  return !standin.set;
}

/* The program's own calls stand between these two. */
static void enter(int owner) {
  if (driver_is_real()) must(real.push(owner == created_turn ? real.created : real.primary), "cuCtxPushCurrent");
}

static void leave(void) {
  void* current;
  if (driver_is_real()) must(real.pop(&current), "cuCtxPopCurrent");
}

static void make_on_device(struct memory* m) {
  CUdeviceptr at = 0;
  if (driver_is_real() && m->owner == pool_turn) {
    must(real.mem_alloc_async(&at, m->bytes, NULL), "cuMemAllocAsync");
    must(real.synchronize(NULL), "cuStreamSynchronize");
  } else {
    must(cuda.mem_alloc(&at, m->bytes), "cuMemAlloc");
  }
  m->at = (void*)at;
}

static void make_managed(struct memory* m) {
  CUdeviceptr at = 0;
  must(cuda.mem_alloc_managed(&at, m->bytes, attach_global), "cuMemAllocManaged");
  m->at = (void*)at;
}

static void make_on_host(struct memory* m) {
  if (driver_is_real() && m->owner)
    must(real.mem_alloc_host(&m->at, m->bytes), "cuMemAllocHost");
  else
    m->at = malloc(m->bytes);
}

struct memory new_memory(enum place place, size_t bytes) {
  static int turn;
  struct memory m = {place, NULL, bytes, turn++ % (place == HOST ? host_turns : device_turns)};
  enter(m.owner);
  if (place == DEVICE) make_on_device(&m);
  if (place == MANAGED) make_managed(&m);
  if (place == HOST) make_on_host(&m);
  leave();
  return m;
}

void free_memory(const struct memory* m) {
  enter(m->owner);
  if (m->place != HOST)
    must(cuda.mem_free((CUdeviceptr)m->at), "cuMemFree");
  else if (driver_is_real() && m->owner)
    must(real.mem_free_host(m->at), "cuMemFreeHost");
  else
    free(m->at);
  leave();
}

static void set_part(const struct memory* m, size_t offset, const void* bytes, size_t size) {
  char* at = (char*)m->at + offset;
  if (m->place != DEVICE) {
    memcpy(at, bytes, size);
  } else if (!driver_is_real()) {
    standin.set((CUdeviceptr)at, bytes, size);
  } else {
    enter(m->owner);
    must(real.copy_in((CUdeviceptr)at, bytes, size), "cuMemcpyHtoD");
    must(real.synchronize(NULL), "cuStreamSynchronize");
    leave();
  }
}

void set_memory(const struct memory* m, const void* bytes) {
  set_part(m, 0, bytes, m->bytes);
}

void set_int(const struct memory* m, size_t index, int value) {
  set_part(m, index * sizeof value, &value, sizeof value);
}

void get_memory(const struct memory* m, void* bytes) {
  if (m->place != DEVICE) {
    memcpy(bytes, m->at, m->bytes);
  } else if (!driver_is_real()) {
    standin.get((CUdeviceptr)m->at, bytes, m->bytes);
  } else {
    enter(m->owner);
    must(real.copy_out(bytes, (CUdeviceptr)m->at, m->bytes), "cuMemcpyDtoH");
    leave();
  }
}

size_t written_by_others(const struct memory* m) {
  return driver_is_real() || m->place != DEVICE ? 0 : standin.written((CUdeviceptr)m->at, m->bytes);
}

int contexts_left(void) {
  void* current = NULL;
  if (!driver_is_real()) return standin.depth();
  must(real.get_current(&current), "cuCtxGetCurrent");
  return current != NULL;
}

int calls_of_driver(void) {
  if (driver_is_real()) return 0;
  return standin.count(STANDIN_COPIED_IN) + standin.count(STANDIN_PUSHED) + standin.count(STANDIN_WAITED);
}

void fail_from_now(enum standin_step step) {
  if (driver_is_real()) exit(fprintf(stderr, "this driver does not fail when told to\n"));
  standin.fail(step);
}
