/* A stand-in for libcuda.so.1, of the functions that the tests and Stretto use. "Device memory" is a mapping without access:
 * whoever touches it on the CPU dies. The stand-in alone reaches its bytes, through a second mapping, and only in the context
 * that owns them. Copies that need not be complete on return are made as late as a driver may: when the stream is waited for.
 * There is always a kernel under way on a blocking stream that ends when MPI's call has: whatever uses the legacy stream would
 * wait for it for ever, and fails here.
 * WITHOUT_ROWS, WITHOUT_STARTING: without copies of rows, without any that need not be complete. */
#define _GNU_SOURCE
#include "standin.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_allocations = 4096, most_pending = 4096, devices = 3, most_pitch = 2147483647 };
enum { invalid_value = 1, not_initialized = 3, invalid_context = 201, invalid_handle = 400, launch_failed = 719 };
enum { memory_host = 1, memory_device = 2 };
enum { attribute_context = 1, attribute_memory_type = 2, attribute_is_managed = 8, attribute_device_ordinal = 9 };

struct allocation {
  char *device, *bytes, *written;
  size_t size;
  int managed, ordinal, pooled;
};

static struct allocation allocations[most_allocations];
static int count, initialized;
static enum standin_step failing;
static int calls[standin_calls];
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
  ++calls[STANDIN_ASKED];
  for (unsigned i = 0; i < number; ++i) {
    if (attributes[i] == attribute_context) *(void**)data[i] = a && !a->pooled ? context_of(a) : 0;
    if (attributes[i] == attribute_memory_type) *(unsigned*)data[i] = a ? 2 : 0;
    if (attributes[i] == attribute_is_managed) *(unsigned*)data[i] = a && a->managed;
    if (attributes[i] == attribute_device_ordinal) *(int*)data[i] = a ? a->ordinal : -2;
  }
  return 0;
}

CUresult cuCtxPushCurrent_v2(void* context) {
  ++calls[STANDIN_PUSHED];
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

/* As cuda.h has it. */
struct side {
  size_t x, y;
  unsigned memory;
  const char* host;
  CUdeviceptr device;
  void* array;
  size_t pitch;
};

typedef struct {
  struct side from, to;
  size_t width, height;
} CUDA_MEMCPY2D;

static struct pending {
  void* context;
  const char* host;
  CUdeviceptr device;
  size_t host_pitch, device_pitch, width, height;
} started[most_pending];
static int started_count;

static void write_rows(const struct pending* copy) {
  const struct allocation* a = owner(copy->device);
  for (size_t row = 0; a && row < copy->height; ++row) {
    size_t offset = copy->device + row * copy->device_pitch - (CUdeviceptr)a->device;
    memcpy(a->bytes + offset, copy->host + row * copy->host_pitch, copy->width);
    memset(a->written + offset, 1, copy->width);
  }
}

/* What has been started in the current context; others keep their order. */
static void finish(int written) {
  int left = 0;
  for (int i = 0; i < started_count; ++i) {
    if (started[i].context != stack[depth - 1])
      started[left++] = started[i];
    else if (written)
      write_rows(&started[i]);
  }
  started_count = left;
}

/* Of this thread: the one stream here that need not wait for others. */
static int is_own(const void* stream) {
  return stream == (void*)2;
}

CUresult cuStreamSynchronize(void* stream) {
  ++calls[STANDIN_WAITED];
  if (depth == 0) return invalid_context;
  if (!is_own(stream)) return invalid_handle;
  finish(failing != STANDIN_WAIT);
  return failing == STANDIN_WAIT ? launch_failed : 0;
}

static CUresult check(CUdeviceptr at, size_t size) {
  const struct allocation* a = owner(at);
  if (!a || size > (CUdeviceptr)a->device + a->size - at) return invalid_value;
  return depth == 0 || stack[depth - 1] != context_of(a) ? invalid_context : 0;
}

static CUresult check_in(CUdeviceptr at, size_t size) {
  static int since;
  CUresult error = check(at, size);
  ++calls[STANDIN_COPIED_IN];
  if (error) return error;
  since = failing == STANDIN_LATER_COPY_IN ? since + 1 : 0;
  return failing == STANDIN_COPY_IN || since > 1 ? launch_failed : 0;
}

CUresult cuMemcpyDtoH_v2_ptds(void* host, CUdeviceptr at, size_t size) {
  const struct allocation* a = owner(at);
  CUresult error = check(at, size);
  if (error) return error;
  if (failing == STANDIN_COPY_OUT) return launch_failed;
  finish(1);
  memcpy(host, a->bytes + (at - (CUdeviceptr)a->device), size);
  return 0;
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr at, const void* host, size_t size) {
  struct pending copy = {.host = host, .device = at, .width = size, .height = 1};
  CUresult error = check_in(at, size);
  if (error) return error;
  finish(1);
  write_rows(&copy);
  return 0;
}

#ifndef WITHOUT_STARTING
/* Where there is no room for more a driver makes the caller wait. */
static CUresult start(struct pending copy, const void* stream) {
  CUresult error = check_in(copy.device, (copy.height - 1) * copy.device_pitch + copy.width);
  if (error) return error;
  if (!is_own(stream)) return invalid_handle;
  if (started_count == most_pending) finish(1);
  if (started_count == most_pending) return 2;
  copy.context = stack[depth - 1];
  started[started_count++] = copy;
  return 0;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr at, const void* host, size_t size, void* stream) {
  struct pending copy = {.host = host, .device = at, .width = size, .height = 1};
  return start(copy, stream);
}
#endif

#if !defined WITHOUT_STARTING && !defined WITHOUT_ROWS
static int is_good(const struct side* side, unsigned memory, size_t width) {
  return side->memory == memory && side->pitch >= width + side->x && side->pitch <= most_pitch;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* rows, void* stream) {
  const struct side *from = &rows->from, *to = &rows->to;
  if (rows->width == 0 || rows->height == 0 || !from->host) return invalid_value;
  if (!is_good(from, memory_host, rows->width) || !is_good(to, memory_device, rows->width)) return invalid_value;
  struct pending copy = {.host = from->host + from->y * from->pitch + from->x,
                         .device = to->device + to->y * to->pitch + to->x,
                         .host_pitch = from->pitch,
                         .device_pitch = to->pitch,
                         .width = rows->width,
                         .height = rows->height};
  return start(copy, stream);
}
#endif

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

int standin_count(enum standin_call call) {
  return calls[call];
}

int standin_pending(void) {
  return started_count;
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
