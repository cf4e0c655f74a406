#include "bare.h"

#include <sched.h>
#include <string.h>

#include "shared.h"

enum { slots = 8, looks = 4 };

typedef struct {
  _Alignas(64) atomic_uint number; /* of the call that this is of */
  float data[bare_most / sizeof(float)];
} Slot;

struct BareBoard {
  Slot slots[slots];
  _Alignas(128) atomic_uint done; /* the newest call that its rank has ended */
};

/* To the cache that the cores share, from where others have the line sooner (cldemote; elsewhere no operation). */
static void offer(const void* line) {
#if defined(__x86_64__)
  __asm__ volatile(".byte 0x0f, 0x1c, 0x07" : : "D"(line) : "memory");
#else
  (void)line;
#endif
}

static void fetch_to_write(const void* line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char*)line));
#else
  __builtin_prefetch(line, 1);
#endif
}

int bare_open(Bare* bare, MPI_Comm comm, int sharing) {
  int ranks;
  PMPI_Comm_size(comm, &ranks);
  bare->bytes = sizeof(BareBoard) * (size_t)ranks;
  bare->boards = shared_open(comm, bare->bytes);
  bare->number = bare->drained = 0;
  bare->sharing = sharing;
  return bare->boards ? 0 : -1;
}

void bare_close(Bare* bare) {
  shared_close(bare->boards, bare->bytes);
}

int bare_does(Operation operation, size_t bytes) {
  const int known = operation == op_allreduce || operation == op_reduce || operation == op_bcast || operation == op_barrier;
  return known && bytes <= bare_most;
}

static void await(const Bare* bare, atomic_uint* number, unsigned least) {
  for (unsigned look = 1; (int)(atomic_load_explicit(number, memory_order_acquire) - least) < 0; ++look) {
    if (bare->sharing && look >= looks)
      sched_yield();
    else
      relax();
  }
}

static Slot* slot(const Bare* bare, int rank) {
  return &bare->boards[rank].slots[bare->number % slots];
}

/* What stood in this rank's slot before must have been read by everybody. */
static void give(Bare* bare, const Data* data, const float* from, size_t bytes) {
  if ((int)(bare->drained - (bare->number - slots)) < 0) {
    for (int r = 0; r < data->ranks; ++r)
      if (r != data->rank) await(bare, &bare->boards[r].done, bare->number - slots);
    bare->drained = bare->number - slots;
  }
  Slot* own = slot(bare, data->rank);
  memcpy(own->data, from, bytes);
  atomic_store_explicit(&own->number, bare->number, memory_order_release);
  for (size_t at = 0; at < bytes + sizeof own->number; at += 64) offer((const char*)own + at);
}

static const float* take(const Bare* bare, int rank) {
  Slot* theirs = slot(bare, rank);
  await(bare, &theirs->number, bare->number);
  return theirs->data;
}

static void add_up(const Bare* bare, const Data* data, size_t bytes) {
  const size_t count = bytes / sizeof *data->out;
  for (int r = 0; r < data->ranks; ++r) {
    const float* part = r == data->rank ? data->in : take(bare, r);
    if (r == 0)
      memcpy(data->out, part, bytes);
    else
      for (size_t i = 0; i < count; ++i) data->out[i] += part[i];
  }
}

void bare_call(Bare* bare, Operation operation, const Data* data, size_t bytes, int root) {
  const int is_root = data->rank == root;
  ++bare->number;
  const int gives = operation == op_bcast ? is_root : operation != op_reduce || !is_root;
  if (gives) give(bare, data, operation == op_bcast ? data->out : data->in, bytes);
  if (operation == op_allreduce || (operation == op_reduce && is_root)) add_up(bare, data, bytes);
  if (operation == op_bcast && !is_root) memcpy(data->out, take(bare, root), bytes);
  if (operation == op_barrier)
    for (int r = 0; r < data->ranks; ++r) take(bare, r);
  atomic_store_explicit(&bare->boards[data->rank].done, bare->number, memory_order_release);
  const char* next = (const char*)&bare->boards[data->rank].slots[(bare->number + 1) % slots];
  for (size_t at = 0; gives && at < bytes + sizeof(atomic_uint); at += 64) fetch_to_write(next + at);
}
