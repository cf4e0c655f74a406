// What does moving bytes from core to core cost? One thread on each CPU this process may use (x86-64, two CPUs or more): how long
// a cache line takes from one to another, how long a barrier of all takes, and how fast each copies what its neighbour has just
// written. Prints rows for results/<machine>/machine.md in two columns: what was measured, and the result. A sample is that of
// the slowest thread; results are medians.
//
//     cc -O2 -pthread lines.c -o lines && ./lines
//
// memcpy of some C libraries is `rep movsb` at these sizes. A processor without cldemote takes it for an empty instruction.
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { most_threads = 64, line_bytes = 64, page_bytes = 4096, largest_copy = 1 << 20 };
enum { trials = 5, passes = 2000, copies = 41 };

typedef _Atomic uint64_t Flag;
typedef char Block[largest_copy];
typedef void* Copy(void*, const void*, size_t);

// Flag s lies at s * between, and in_turn further on in odd rounds.
struct layout {
  size_t between, in_turn;
};
static const struct layout side_by_side = {2 * line_bytes, 0};  // not one line's: some processors fetch lines in pairs
static const struct layout on_pages = {2 * page_bytes, 0}, on_pages_in_turn = {2 * page_bytes, page_bytes};

static _Alignas(page_bytes) char flags[2 * most_threads * 2 * page_bytes];
static Block *source, *written, *target;  // by thread; one copies what the next has written from its source
static int threads, cpus[most_threads];
static double seconds_of[most_threads];
static pthread_barrier_t everyone;
static _Thread_local int me, ends[2];
static _Thread_local uint64_t passed;  // rounds so far, the same in all threads: flags only grow

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

static double slowest(double seconds) {
  seconds_of[me] = seconds;
  pthread_barrier_wait(&everyone);
  double most = 0;
  for (int t = 0; t < threads; ++t) most = seconds_of[t] > most ? seconds_of[t] : most;
  pthread_barrier_wait(&everyone);
  return most;
}

static Flag* flag(const struct layout* l, int slot, uint64_t round) {
  return (Flag*)(flags + (size_t)slot * l->between + (round & 1) * l->in_turn);
}

static void set(Flag* f, uint64_t round) {
  atomic_store_explicit(f, round, memory_order_release);
}

// A pause takes as long as a good part of a line's way.
static void await(Flag* f, uint64_t round, bool pausing) {
  for (int looks = 1; atomic_load_explicit(f, memory_order_acquire) < round; ++looks)
    if (looks % 4096 == 0)
      sched_yield();
    else if (pausing)
      _mm_pause();
}

// Each of two threads writes its line when the other has written: twice the way of a line.
static void pass_to_and_fro(const struct layout* l) {
  uint64_t n = ++passed;
  if (me == ends[0]) set(flag(l, ends[0], n), n);
  if (me == ends[0]) await(flag(l, ends[1], n), n, false);
  if (me == ends[1]) await(flag(l, ends[0], n), n, false);
  if (me == ends[1]) set(flag(l, ends[1], n), n);
}

// Each writes its line and reads all others'.
static void pass_flat(const struct layout* l) {
  uint64_t n = ++passed;
  set(flag(l, me, n), n);
  for (int i = 1; i < threads; ++i) await(flag(l, (me + i) % threads, n), n, true);
}

// Thread 0 reads the lines of all; all read one of its own.
static void pass_gathered(const struct layout* l) {
  uint64_t n = ++passed;
  Flag* release = flag(l, most_threads, n);
  for (int t = 1; t < threads && me == 0; ++t) await(flag(l, t, n), n, true);
  set(me == 0 ? release : flag(l, me, n), n);
  if (me != 0) await(release, n, true);
}

// Among four neighbours, then among the threads that have the same place in their fours.
static void pass_in_two_steps(const struct layout* l) {
  uint64_t n = ++passed;
  int place = me % 4, four = me / 4, fours = threads / 4;
  set(flag(l, me, n), n);
  for (int i = 1; i < 4; ++i) await(flag(l, four * 4 + (place + i) % 4, n), n, true);
  set(flag(l, most_threads + me, n), n);
  for (int i = 1; i < fours; ++i) await(flag(l, most_threads + (four + i) % fours * 4 + place, n), n, true);
}

static double pass_ns(void (*pass)(const struct layout*), const struct layout* l) {
  double samples[trials];
  for (int i = 0; i < trials; ++i) {
    for (int p = 0; p < passes / 10; ++p) pass(l);
    double begin = now();
    for (int p = 0; p < passes; ++p) pass(l);
    samples[i] = slowest((now() - begin) / passes);
  }
  return median(samples, trials) * 1e9;
}

static void line_row(void) {
  double least = 1e9, most = 0;
  for (ends[0] = 0; ends[0] < threads; ++ends[0])
    for (ends[1] = ends[0] + 1; ends[1] < threads; ++ends[1]) {
      double ns = pass_ns(pass_to_and_fro, &side_by_side) / 2;
      least = ns < least ? ns : least;
      most = ns > most ? ns : most;
    }
  if (me == 0) printf("| a cache line from core to core | %.0f to %.0f ns, all pairs |\n", least, most);
}

static void barrier_row(void) {
  bool fours = threads % 4 == 0 && threads > 4;
  double beside = pass_ns(pass_flat, &side_by_side) / 1000, apart = pass_ns(pass_flat, &on_pages) / 1000;
  double in_turn = pass_ns(pass_flat, &on_pages_in_turn) / 1000, gathered = pass_ns(pass_gathered, &side_by_side) / 1000;
  double in_steps = fours ? pass_ns(pass_in_two_steps, &side_by_side) / 1000 : 0;
  if (me != 0) return;
  printf("| %d threads pass a barrier: each writes its line and reads all others' | %.2f us with lines ", threads, beside);
  printf("side by side, %.2f on pages of their own (two each, in turn: %.2f); ", apart, in_turn);
  printf("gathered by one and released %.2f", gathered);
  printf(fours ? "; in two steps of four %.2f |\n" : " |\n", in_steps);
}

static void* copy_string(void* to, const void* from, size_t bytes) {
  void* at = to;
  __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
  return to;
}

static void* copy_prefetched(void* to, const void* from, size_t bytes) {
  enum { ahead = 2048 };
  for (size_t at = 0; at < bytes; at += line_bytes) {
    __builtin_prefetch((const char*)from + (at + ahead < bytes ? at + ahead : at));
    memcpy((char*)to + at, (const char*)from + at, line_bytes);
  }
  return to;
}

static void demote(const char* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += line_bytes) __asm__ volatile(".byte 0x0f, 0x1c, 0x00" : : "a"(from + at) : "memory");
}

// GB/s of one thread; also how long writing took.
static double copy_rate(size_t bytes, Copy* copy, bool demoting, double* write_seconds) {
  double writes[copies], reads[copies];
  for (int i = 0; i < copies; ++i) {
    memset(target[me], i, bytes);
    source[me][i * line_bytes] = (char)i;
    pthread_barrier_wait(&everyone);
    double begin = now();
    memcpy(written[me], source[me], bytes);
    if (demoting) demote(written[me], bytes);
    double end = now();
    pass_flat(&side_by_side);
    double begin_read = now();
    copy(target[me], written[(me + 1) % threads], bytes);
    reads[i] = slowest(now() - begin_read);
    writes[i] = slowest(end - begin);
  }
  *write_seconds = median(writes, copies);
  return (double)bytes / median(reads, copies) / 1e9;
}

// Returns how long writing 256 KiB took, for the row where lines are demoted to compare with.
static double copy_row(const char* name, Copy* copy, bool demoting, double plain_seconds) {
  double seconds, unused;
  double middle = copy_rate(largest_copy / 4, copy, demoting, &seconds), large = copy_rate(largest_copy, copy, demoting, &unused);
  if (me == 0) printf("| %s | %.1f GB/s a core; 1 MiB %.1f", name, middle, large);
  if (me == 0 && demoting) printf("; writing 256 KiB takes %.1f times as long", seconds / plain_seconds);
  if (me == 0) printf(" |\n");
  return seconds;
}

static Block* blocks(int kind) {
  Block* b = mmap(NULL, (size_t)threads * sizeof *b, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  if (b == MAP_FAILED) exit((perror("mmap"), 1));
  return b;
}

static void* measure(void* thread) {
  me = (int)(intptr_t)thread;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpus[me], &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  memset(source[me], 1, largest_copy);
  line_row();
  barrier_row();
  double plain_seconds = copy_row("each copies what its neighbour has just written, 256 KiB", memcpy, false, 1);
  copy_row("the same with software prefetch", copy_prefetched, false, 1);
  copy_row("the same with `rep movsb`", copy_string, false, 1);
  copy_row("the same, the writer having demoted its lines (`cldemote`)", memcpy, true, plain_seconds);
  return NULL;
}

int main(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return perror("sched_getaffinity"), 1;
  for (int c = 0; c < CPU_SETSIZE && threads < most_threads; ++c)
    if (CPU_ISSET(c, &allowed)) cpus[threads++] = c;
  if (threads < 2) return fprintf(stderr, "lines needs two CPUs\n"), 1;
  source = blocks(MAP_PRIVATE);
  written = blocks(MAP_SHARED);
  target = blocks(MAP_PRIVATE);
  pthread_barrier_init(&everyone, NULL, (unsigned)threads);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("| | |\n|---|---|\n");
  pthread_t ids[most_threads];
  for (int t = 0; t < threads; ++t)
    if (pthread_create(&ids[t], NULL, measure, (void*)(intptr_t)t) != 0) return fprintf(stderr, "pthread_create fails\n"), 1;
  for (int t = 0; t < threads; ++t) pthread_join(ids[t], NULL);
  return 0;
}
