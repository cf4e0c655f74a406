// What do processes get from cross-memory attach (process_vm_readv, process_vm_writev)? One process on each CPU this one may use,
// two CPUs or more: from a neighbour, one at a time and all at once; of the same pages of one process; and writing to one. Each
// source is rewritten by its owner before every sample. Prints rows for results/<machine>/machine.md in two columns: what was
// measured, and the result. A sample is that of the slowest process; results are medians.
//
//     cc -O2 attach.c -o attach && ./attach
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_processes = 64, repeats = 21, patience_seconds = 120 };
enum { call_bytes = 64 << 10, read_bytes = 1 << 20, large_block = 256 << 10, huge_page = 2 << 20 };

struct memory {
  char *source, *target;
};

struct shared {
  _Atomic int arrived, error;
  pid_t pid[most_processes];
  struct memory memory[2][most_processes];  // in small pages, in huge ones
  double seconds[most_processes];
};

// What the processes `first` to `last` do at once.
struct pattern {
  void (*move)(const struct pattern*);
  int first, last;
  size_t bytes;  // of each
  bool huge;
};

typedef ssize_t Attach(pid_t, const struct iovec*, unsigned long, const struct iovec*, unsigned long, unsigned long);

static struct shared* all;
static int processes, cpus[most_processes], me, meetings;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void leave(int status) {
  while (me == 0 && wait(NULL) > 0) continue;
  exit(status);
}

// The first to fail says why; the others notice when they meet.
static void give_up(const char* what, int error) {
  int none = 0;
  if (atomic_compare_exchange_strong(&all->error, &none, error)) fprintf(stderr, "%s: %s\n", what, strerror(error));
  leave(1);
}

static void meet(void) {
  int target = ++meetings * processes;
  atomic_fetch_add(&all->arrived, 1);
  while (atomic_load(&all->arrived) < target) {
    if (atomic_load(&all->error) != 0) leave(1);
    sched_yield();
  }
}

static int by_value(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double slowest(double seconds) {
  all->seconds[me] = seconds;
  meet();
  double most = 0;
  for (int p = 0; p < processes; ++p) most = all->seconds[p] > most ? all->seconds[p] : most;
  meet();
  return most;
}

static void attach(Attach* call, int peer, char* here, char* there, size_t bytes) {
  struct iovec local = {here, bytes}, remote = {there, bytes};
  ssize_t moved = call(all->pid[peer], &local, 1, &remote, 1, 0);
  if (moved != (ssize_t)bytes)
    give_up("cross-memory attach is refused (see ptrace_scope in proc(5), and the container's seccomp)", moved < 0 ? errno : EIO);
}

static void read_from(int peer, const struct pattern* p) {
  struct memory* memory = all->memory[p->huge];
  for (size_t at = 0; at < p->bytes; at += call_bytes)
    attach(process_vm_readv, peer, memory[me].target + at, memory[peer].source + at, call_bytes);
}

static void read_neighbour(const struct pattern* p) {
  read_from((me + 1) % processes, p);
}

static void read_first(const struct pattern* p) {
  read_from(0, p);
}

static void write_to_first(const struct pattern* p) {
  struct memory* memory = all->memory[p->huge];
  attach(process_vm_writev, 0, memory[me].source, memory[0].source + (size_t)me * p->bytes, p->bytes);
}

// GB/s of one process.
static double rate(struct pattern p) {
  double samples[repeats];
  bool moves = me >= p.first && me <= p.last;
  size_t rewritten = p.move == write_to_first ? (size_t)processes * p.bytes : p.bytes;
  for (int i = 0; i < repeats; ++i) {
    memset(all->memory[p.huge][me].source, i, rewritten);
    meet();
    double begin = now();
    if (moves) p.move(&p);
    samples[i] = slowest(moves ? now() - begin : 0);
  }
  qsort(samples, repeats, sizeof *samples, by_value);
  return (double)p.bytes / samples[repeats / 2] / 1e9;
}

static void neighbour_row(void) {
  double one[2], each[2];
  for (int huge = 0; huge < 2; ++huge) {
    one[huge] = rate((struct pattern){read_neighbour, 0, 0, read_bytes, huge});
    each[huge] = rate((struct pattern){read_neighbour, 0, processes - 1, read_bytes, huge});
  }
  if (me != 0) return;
  printf("| cross-memory attach, 64 KiB a call, from a neighbour | %.1f GB/s, %.1f when all %d do; ", one[0], each[0], processes);
  printf("with huge pages %.1f and %.1f |\n", one[1], each[1]);
}

static void same_pages_row(void) {
  if (me == 0) printf("| the same, all read the same pages of one process | GB/s for all together");
  for (int readers = 1, most = processes - 1; readers <= most;
       readers = readers < most && 2 * readers > most ? most : 2 * readers) {
    double all_together = readers * rate((struct pattern){read_first, 1, readers, read_bytes, false});
    if (me == 0) printf("%s %d read %.1f", readers > 1 ? "," : ":", readers, all_together);
  }
  if (me == 0) printf(" |\n");
}

static void write_row(void) {
  int writers = processes - 1;
  double small = writers * rate((struct pattern){write_to_first, 1, writers, call_bytes, false});
  double large = writers * rate((struct pattern){write_to_first, 1, writers, large_block, false});
  double large_huge = writers * rate((struct pattern){write_to_first, 1, writers, large_block, true});
  if (me != 0) return;
  printf("| %d write 64 KiB each to one process | %.1f GB/s for all together; ", writers, small);
  printf("256 KiB %.1f, with huge pages %.1f |\n", large, large_huge);
}

static char* pages(size_t bytes, bool huge) {
  bytes += -bytes % huge_page;
  char* p = mmap(NULL, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) give_up("mmap", errno);
  p += -(uintptr_t)p % huge_page;
  madvise(p, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return memset(p, 1, bytes);
}

static bool huge_pages_exist(void) {
  char modes[64] = "";
  FILE* f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  if (f != NULL && fgets(modes, sizeof modes, f) == NULL) modes[0] = 0;
  if (f != NULL) fclose(f);
  return strstr(modes, "[always]") != NULL || strstr(modes, "[madvise]") != NULL;
}

static void measure(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpus[me], &one);
  sched_setaffinity(0, sizeof one, &one);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  alarm(patience_seconds);  // should one be killed, the others do not wait for ever
  size_t blocks = (size_t)processes * large_block, source_bytes = blocks > read_bytes ? blocks : read_bytes;
  all->pid[me] = getpid();
  for (int huge = 0; huge < 2; ++huge)
    all->memory[huge][me] = (struct memory){pages(source_bytes, huge), pages(read_bytes, huge)};
  meet();
  neighbour_row();
  same_pages_row();
  write_row();
}

int main(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return perror("sched_getaffinity"), 1;
  for (int c = 0; c < CPU_SETSIZE && processes < most_processes; ++c)
    if (CPU_ISSET(c, &allowed)) cpus[processes++] = c;
  if (processes < 2) return fprintf(stderr, "attach needs two CPUs\n"), 1;
  if (!huge_pages_exist()) fprintf(stderr, "this system gives no huge pages: their figures are those of small ones\n");
  all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return perror("mmap"), 1;
  for (int p = 1; p < processes && me == 0; ++p) {
    pid_t child = fork();
    if (child < 0) give_up("fork", errno);
    if (child == 0) me = p;
  }
  if (me == 0) printf("| | |\n|---|---|\n");
  measure();
  leave(0);
}
