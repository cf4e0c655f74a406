/* A stand-in for libcuda.so.1, of the functions that the tests and Stretto use. "Device memory" is a mapping without access:
 * whoever touches it on the CPU dies. The stand-in alone reaches its bytes, through a second mapping, and only in the context
 * that owns them. */
#define _GNU_SOURCE
#include "standin.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_allocations = 4096, devices = 3, not_initialized = 3, invalid_value = 1, invalid_context = 201, launch_failed = 719 };
enum { attribute_context = 1, attribute_memory_type = 2, attribute_is_managed = 8, attribute_device_ordinal = 9 };

struct allocation {
  char *device, *bytes, *written;
  size_t size;
  int managed, ordinal, pooled;
};

static struct allocation allocations[most_allocations];
static int count, initialized;
static enum standin_step failing;
static char primary[devices], user_contexts[devices];
static __thread void* stack[16];
static __thread int depth;

static struct allocation* owner(CUdeviceptr at) {
  for (int i = 0; i < count; ++i) {
    struct allocation* a = &allocations[i];
    if (at >= (CUdeviceptr)a->device && at < (CUdeviceptr)a->device + a->size) return a;
  }
  return 0;
}

static void* context_of(const struct allocation* a) {
  return a->pooled ? &primary[a->ordinal] : &user_contexts[a->ordinal];
}

CUresult cuInit(unsigned flags) {
  initialized = 1;
  return flags ? invalid_value : 0;
}

static CUresult allocate(CUdeviceptr* at, size_t size, int managed) {
  if (!initialized) return not_initialized;
  if (count == most_allocations) return 2;
  struct allocation* a = &allocations[count];
  int fd = memfd_create("device", 0);
  if (fd < 0 || ftruncate(fd, (off_t)size)) return 2;
  a->bytes = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  a->device = mmap(0, size, managed ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, fd, 0);
  a->written = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  close(fd);
  a->size = size;
  a->managed = managed;
  a->ordinal = count % devices;
  a->pooled = count % 2; /* as memory of cuMemAllocAsync, which belongs to no context */
  *at = (CUdeviceptr)a->device;
  ++count;
  return 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr* at, size_t size) {
  return allocate(at, size, 0);
}

CUresult cuMemAllocManaged(CUdeviceptr* at, size_t size, unsigned flags) {
  (void)flags;
  return allocate(at, size, 1);
}

CUresult cuMemFree_v2(CUdeviceptr at) {
  struct allocation* a = owner(at);
  if (!a) return invalid_value;
  munmap(a->bytes, a->size);
  munmap(a->device, a->size);
  munmap(a->written, a->size);
  *a = allocations[--count];
  return 0;
}

CUresult cuPointerGetAttributes(unsigned number, const int* attributes, void** data, CUdeviceptr at) {
  if (!initialized) return not_initialized;
  const struct allocation* a = owner(at);
  for (unsigned i = 0; i < number; ++i) {
    if (attributes[i] == attribute_context) *(void**)data[i] = a && !a->pooled ? context_of(a) : 0;
    if (attributes[i] == attribute_memory_type) *(unsigned*)data[i] = a ? 2 : 0;
    if (attributes[i] == attribute_is_managed) *(unsigned*)data[i] = a && a->managed;
    if (attributes[i] == attribute_device_ordinal) *(int*)data[i] = a ? a->ordinal : -2;
  }
  return 0;
}

CUresult cuCtxPushCurrent_v2(void* context) {
  if (failing == STANDIN_CONTEXT) return launch_failed;
  if (!context || depth == 16) return invalid_value;
  stack[depth++] = context;
  return 0;
}

CUresult cuCtxPopCurrent_v2(void** context) {
  if (depth == 0) return invalid_context;
  *context = stack[--depth];
  return 0;
}

CUresult cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 0 || device >= devices) return invalid_value;
  *context = &primary[device];
  return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(int device) {
  return device < 0 || device >= devices ? invalid_value : 0;
}

CUresult cuStreamSynchronize(void* stream) {
  (void)stream;
  return depth ? 0 : invalid_context;
}

static CUresult check(const struct allocation* a, CUdeviceptr at, size_t size, enum standin_step step) {
  if (!a || at + size > (CUdeviceptr)a->device + a->size) return invalid_value;
  if (depth == 0 || stack[depth - 1] != context_of(a)) return invalid_context;
  return failing == step ? launch_failed : 0;
}

CUresult cuMemcpyDtoH_v2(void* host, CUdeviceptr at, size_t size) {
  const struct allocation* a = owner(at);
  CUresult error = check(a, at, size, STANDIN_COPY_OUT);
  if (!error) memcpy(host, a->bytes + (at - (CUdeviceptr)a->device), size);
  return error;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr at, const void* host, size_t size) {
  const struct allocation* a = owner(at);
  CUresult error = check(a, at, size, STANDIN_COPY_IN);
  if (error) return error;
  memcpy(a->bytes + (at - (CUdeviceptr)a->device), host, size);
  memset(a->written + (at - (CUdeviceptr)a->device), 1, size);
  return 0;
}

static struct {
  char *begin, *end;
} locked[64];
static int locked_count, refuses_to_lock;

CUresult cuMemHostRegister_v2(void* begin, size_t size, unsigned flags) {
  (void)flags;
  if (depth == 0) return invalid_context;
  if (refuses_to_lock) return 2;
  for (int i = 0; i < locked_count; ++i)
    if ((char*)begin < locked[i].end && (char*)begin + size > locked[i].begin) return 712; /* registered already */
  if (locked_count == 64) return 2;
  locked[locked_count].begin = begin;
  locked[locked_count++].end = (char*)begin + size;
  return 0;
}

int standin_locked(void) {
  return locked_count;
}

void standin_refuse_to_lock(void) {
  refuses_to_lock = 1;
}

void standin_fail(enum standin_step step) {
  failing = step;
}

int standin_depth(void) {
  return depth;
}

void standin_set(CUdeviceptr at, const void* bytes, size_t size) {
  const struct allocation* a = owner(at);
  memcpy(a->bytes + (at - (CUdeviceptr)a->device), bytes, size);
  memset(a->written + (at - (CUdeviceptr)a->device), 0, size);
}

void standin_get(CUdeviceptr at, void* bytes, size_t size) {
  const struct allocation* a = owner(at);
  memcpy(bytes, a->bytes + (at - (CUdeviceptr)a->device), size);
}

size_t standin_written(CUdeviceptr at, size_t size) {
  const struct allocation* a = owner(at);
  const char* first = a->written + (at - (CUdeviceptr)a->device);
  size_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += (size_t)first[i];
  return sum;
}
