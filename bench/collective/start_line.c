#define _GNU_SOURCE
#include "start_line.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared.h"
#include "ticks.h"

enum { polls_of_a_patient_rank = 20000, lead_ns = 500, round_trips = 100, tries = 40 };

int start_line_open(StartLine* line, MPI_Comm comm, int sharing) {
  int ranks;
  PMPI_Comm_size(comm, &ranks);
  line->shared = shared_open(comm, sizeof(StartLineShared));
  line->ranks = (unsigned)ranks;
  line->sharing = sharing;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) CPU_ZERO(&allowed);
  PMPI_Allreduce(MPI_IN_PLACE, &allowed, sizeof allowed, MPI_BYTE, MPI_BOR, comm);
  line->first_cpu = line->last_cpu = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) {
      line->last_cpu = cpu;
      if (line->first_cpu < 0) line->first_cpu = cpu;
    }
  return line->shared ? 0 : -1;
}

void start_line_close(StartLine* line) {
  shared_close(line->shared, sizeof(StartLineShared));
}

void start_line_halt(StartLine* line) {
  atomic_store(&line->shared->halted, atomic_load(&line->shared->generation) + 1);
}

/* Where ranks share cores, whoever waits sleeps, so that those still in a call have the cores: sched_yield does not give them
 * away where a launcher starts every rank in a session of its own (MPICH's does), as the kernel then divides time by session.
 * A rank with a core of its own yields when it has waited for long: then its peer has lost its core to some other program, and a
 * rank that spins meanwhile uses up its own claim to run when the peer is back. */
static void await_generation_after(const StartLine* line, unsigned generation) {
  unsigned polls = 0;
  while (atomic_load_explicit(&line->shared->generation, memory_order_acquire) == generation) {
    if (line->sharing)
      syscall(SYS_futex, &line->shared->generation, FUTEX_WAIT, generation, NULL, NULL, 0);
    else if (++polls % polls_of_a_patient_rank == 0)
      sched_yield();
    else
      relax();
  }
}

static void open_to_all(const StartLine* line, unsigned generation) {
  atomic_store_explicit(&line->shared->generation, generation, memory_order_release);
  if (line->sharing) syscall(SYS_futex, &line->shared->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int start_line_wait(StartLine* line) {
  StartLineShared* shared = line->shared;
  unsigned generation = atomic_load_explicit(&shared->generation, memory_order_acquire);
  if (atomic_fetch_add(&shared->arrived, 1) + 1 == line->ranks) {
    atomic_store_explicit(&shared->arrived, 0, memory_order_relaxed);
    uint64_t lead = ticks_ns > 0 ? (uint64_t)(lead_ns / ticks_ns) : lead_ns;
    atomic_store_explicit(&shared->start, ticks() + lead, memory_order_relaxed);
    open_to_all(line, generation + 1);
  } else {
    await_generation_after(line, generation);
  }
  const int halted = atomic_load_explicit(&shared->halted, memory_order_relaxed) == generation + 1;
  const uint64_t start = line->sharing ? 0 : atomic_load_explicit(&shared->start, memory_order_relaxed);
  while (ticks() < start) {
  }
  return halted;
}

/* Rank 0 throws, rank 1 returns: `from` is followed by `to` once per round trip. */
static void play(atomic_uint* to, atomic_uint* from, int throws) {
  unsigned ball = atomic_load(to);
  for (int trip = 0; trip < round_trips; ++trip) {
    ++ball;
    if (throws) atomic_store_explicit(to, ball, memory_order_release);
    while (atomic_load_explicit(from, memory_order_acquire) != ball) relax();
    if (!throws) atomic_store_explicit(to, ball, memory_order_release);
  }
}

typedef struct {
  atomic_uint *to, *from;
  int throws, cpu;
  double best_ns; /* out, of who throws */
} Player;

static void* play_on_its_cpu(void* argument) {
  Player* player = argument;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(player->cpu, &one);
  sched_setaffinity(0, sizeof one, &one); /* of this thread */
  for (int try = 0; try < tries; ++try) {
    uint64_t from = ticks();
    play(player->to, player->from, player->throws);
    double took = ticks_to_ns(ticks() - from) / round_trips / 2;
    if (try == 0 || took < player->best_ns) player->best_ns = took;
  }
  return NULL;
}

static double hop_of_threads(const StartLine* line) {
  if (line->first_cpu == line->last_cpu) return 0;
  StartLineShared* shared = line->shared;
  Player throws = {&shared->there, &shared->back, 1, line->first_cpu, 0};
  Player returns = {&shared->back, &shared->there, 0, line->last_cpu, 0};
  pthread_t thrower, returner;
  if (pthread_create(&returner, NULL, play_on_its_cpu, &returns)) return 0;
  const int plays = !pthread_create(&thrower, NULL, play_on_its_cpu, &throws);
  if (!plays) play_on_its_cpu(&throws); /* who returns would wait for ever */
  if (plays) pthread_join(thrower, NULL);
  pthread_join(returner, NULL);
  return throws.best_ns;
}

double start_line_hop_ns(StartLine* line, int rank) {
  if (line->ranks < 2) return 0;
  if (line->sharing) {
    start_line_wait(line);
    const double hop = rank == 0 ? hop_of_threads(line) : 0;
    start_line_wait(line);
    return hop;
  }
  double best = 0;
  for (int try = 0; try < tries; ++try) {
    start_line_wait(line);
    uint64_t from = ticks();
    if (rank == 0) play(&line->shared->there, &line->shared->back, 1);
    if (rank == 1) play(&line->shared->back, &line->shared->there, 0);
    double took = ticks_to_ns(ticks() - from) / round_trips / 2;
    if (try == 0 || took < best) best = took;
  }
  return best;
}
