// How many processes should read one process's memory at a time? Children of one parent read its buffer with process_vm_readv,
// `readers` of them at once, each the whole of it into a buffer of its own. Prints, per message size and number of readers, what
// one reader gets and what all get together (medians). Where the sum stops growing, more readers only wait for each other.
//
//     cc -O2 readers.c -o readers && ./readers
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_readers = 64, repeats = 15 };

struct shared {
  _Atomic int ready, go, done;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void wait_for(_Atomic int* value, int target) {
  while (atomic_load(value) < target) sched_yield();
}

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void read_it(struct shared* s, pid_t parent, char* source, size_t bytes, int reader) {
  char* own = aligned_alloc(4096, bytes);
  memset(own, 1, bytes);
  pin(reader % (int)sysconf(_SC_NPROCESSORS_ONLN));
  for (int i = 1; i <= repeats; ++i) {
    atomic_fetch_add(&s->ready, 1);
    wait_for(&s->go, i);
    for (size_t at = 0; at < bytes;) {
      struct iovec here = {own + at, bytes - at}, there = {source + at, bytes - at};
      ssize_t got = process_vm_readv(parent, &here, 1, &there, 1, 0);
      if (got <= 0) _exit(1);
      at += (size_t)got;
    }
    atomic_fetch_add(&s->done, 1);
  }
  _exit(0);
}

static int by_value(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double median_seconds(char* source, size_t bytes, int readers) {
  struct shared* s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  double seconds[repeats];
  pid_t parent = getpid();
  for (int r = 0; r < readers; ++r)
    if (fork() == 0) read_it(s, parent, source, bytes, r);
  for (int i = 1; i <= repeats; ++i) {
    wait_for(&s->ready, readers * i);
    double begin = now();
    atomic_store(&s->go, i);
    wait_for(&s->done, readers * i);
    seconds[i - 1] = now() - begin;
  }
  int status, bad = 0;
  while (wait(&status) > 0) bad |= status;
  munmap(s, sizeof *s);
  if (bad) exit(fprintf(stderr, "process_vm_readv is refused\n") != 0);
  qsort(seconds, repeats, sizeof *seconds, by_value);
  return seconds[repeats / 2];
}

int main(void) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  size_t largest = (size_t)4 << 20;
  char* source = aligned_alloc(4096, largest);
  memset(source, 2, largest);
  int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
  printf("%d CPUs; GB/s of one reader (of all together)\n%10s", cpus, "bytes");
  for (int readers = 1; readers <= cpus && readers <= most_readers; readers = readers < 4 ? readers + 1 : readers + readers / 2)
    printf("%14d", readers);
  for (size_t bytes = 16 << 10; bytes <= largest; bytes *= 4) {
    printf("\n%10zu", bytes);
    for (int readers = 1; readers <= cpus && readers <= most_readers;
         readers = readers < 4 ? readers + 1 : readers + readers / 2) {
      double rate = (double)bytes / median_seconds(source, bytes, readers) / 1e9;
      printf("%6.1f (%5.1f)", rate, rate * readers);
    }
    fflush(stdout);
  }
  printf("\n");
  return 0;
}
