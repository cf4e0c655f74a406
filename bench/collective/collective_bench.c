/* Times collectives as a program calls them (MPI_X, which a preloaded Stretto takes over) against the MPI library's own
 * (PMPI_X), in turn, in one run. See --help; how samples are taken stands in measure.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bare.h"
#include "decline.h"
#include "floor.h"
#include "options.h"
#include "ticks.h"

typedef struct {
  int rank, ranks;
  int cores; /* that the ranks together may use */
  const char* clock;
  const char* stretto; /* its version; null when it is not loaded */
  int accelerating;
  FILE* json;
} Session;

/* The CPUs each rank may run on, as bits of one word (the first 64 CPUs). */
static unsigned long long allowed_cpus(void) {
  cpu_set_t set;
  unsigned long long bits = 0;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  for (int cpu = 0; cpu < 64; ++cpu)
    if (CPU_ISSET(cpu, &set)) bits |= 1ull << cpu;
  return bits;
}

static void ask_stretto(Session* session) {
  /* POSIX lets a function come out of dlsym; ISO C wants the detour. */
  const char* (*version)(void);
  int (*accelerating)(const char**);
  *(void**)&version = dlsym(RTLD_DEFAULT, "stretto_version");
  *(void**)&accelerating = dlsym(RTLD_DEFAULT, "stretto_accelerating");
  session->stretto = version ? version() : NULL;
  session->accelerating = accelerating ? accelerating(NULL) == 1 : 0;
}

static void write_setup(const Session* session, const unsigned long long* cpus) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  PMPI_Get_library_version(library, &length);
  library[strcspn(library, "\n\"\\")] = 0;
  printf("# %s, %d ranks on %d cores, clock %s, Stretto %s\n", library, session->ranks, session->cores, session->clock,
         session->stretto ? session->stretto : "not loaded");
  if (!session->json) return;
  fprintf(session->json, "{\"kind\":\"setup\",\"library\":\"%s\",\"ranks\":%d,\"cores\":%d,\"clock\":\"%s\",", library,
          session->ranks, session->cores, session->clock);
  fprintf(session->json, "\"stretto\":%s%s%s,\"accelerating\":%s,\"cpu_masks\":[", session->stretto ? "\"" : "",
          session->stretto ? session->stretto : "null", session->stretto ? "\"" : "", session->accelerating ? "true" : "false");
  for (int r = 0; r < session->ranks; ++r) fprintf(session->json, "%s%llu", r ? "," : "", cpus[r]);
  fprintf(session->json, "]}\n");
}

static void open_session(Session* session, const char* json) {
  MPI_Comm_rank(MPI_COMM_WORLD, &session->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &session->ranks);
  session->clock = ticks_open();
  session->json = NULL;
  unsigned long long mine = allowed_cpus(), all = 0;
  unsigned long long* cpus = calloc((size_t)session->ranks, sizeof *cpus);
  PMPI_Allgather(&mine, 1, MPI_UNSIGNED_LONG_LONG, cpus, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
  for (int r = 0; r < session->ranks; ++r) all |= cpus[r];
  session->cores = __builtin_popcountll(all);
  MPI_Barrier(MPI_COMM_WORLD); /* a library that starts with the first collective has now started */
  ask_stretto(session);
  if (session->rank == 0 && json && !(session->json = fopen(json, "w"))) {
    perror(json);
    PMPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (session->rank == 0) write_setup(session, cpus);
  free(cpus);
}

static void write_side(FILE* json, const char* name, const Times* times) {
  fprintf(json, ",\"%s\":{\"median_us\":%.4f,\"p10_us\":%.4f}", name, times->median, times->p10);
}

static void report(const Session* session, Operation operation, size_t bytes, Mode mode, int one_side, const Point* point) {
  const char* mode_name = mode == mode_batch ? "batch" : "balanced";
  const Times *mpi = &point->side[side_mpi], *pmpi = &point->side[side_pmpi];
  printf("%-10s %9zu %-9s", operation_names[operation], bytes, mode_name);
  if (one_side != side_pmpi) printf(" %11.2f %11.2f", mpi->median, mpi->p10);
  if (one_side != side_mpi) printf(" %11.2f %11.2f", pmpi->median, pmpi->p10);
  if (one_side == sides) printf(" %7.3f", mpi->median / pmpi->median);
  printf(" %7.0f %6ux%u%s\n", point->hop_ns[1], point->samples, point->calls, point->wrong ? "  WRONG RESULTS" : "");
  fflush(stdout);
  if (!session->json) return;
  fprintf(session->json, "{\"kind\":\"point\",\"collective\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"mode\":\"%s\"",
          operation_names[operation], bytes, session->ranks, mode_name);
  if (one_side != side_pmpi) write_side(session->json, "mpi", mpi);
  if (one_side != side_mpi) write_side(session->json, "pmpi", pmpi);
  if (one_side == sides) fprintf(session->json, ",\"ratio\":%.4f", mpi->median / pmpi->median);
  if (point->floor_us > 0) fprintf(session->json, ",\"floor_us\":%.4f", point->floor_us);
  fprintf(session->json, ",\"samples\":%u,\"calls\":%u,\"crowded\":%s,\"hop_ns\":[%.1f,%.1f],\"wrong\":%zu}\n", point->samples,
          point->calls, session->ranks > session->cores ? "true" : "false", point->hop_ns[0], point->hop_ns[1], point->wrong);
  fflush(session->json);
}

static void write_header(int one_side) {
  printf("%-10s %9s %-9s", "collective", "bytes", "mode");
  if (one_side != side_pmpi) printf(" %11s %11s", "MPI us", "p10");
  if (one_side != side_mpi) printf(" %11s %11s", "PMPI us", "p10");
  printf("%s  hop ns samples\n", one_side == sides ? "   ratio" : "");
}

static int fits(const Options* options, Operation operation, size_t bytes, int ranks) {
  return operation_buffer(operation, bytes, ranks) <= options->most;
}

static size_t largest_buffer(const Options* options, int ranks) {
  size_t most = 0;
  for (int op = 0; op < operations; ++op)
    for (int i = 0; options->wanted[op] && i < options->size_count; ++i) {
      const size_t bytes = operation_buffer((Operation)op, options->sizes[i], ranks);
      if (bytes <= options->most && bytes > most) most = bytes;
    }
  return most;
}

/* Returns how many points had wrong results, or -1 when a point could not be measured. */
static int measure_all(const Session* session, const Options* options, Data* data, StartLine* line) {
  int wrong = 0;
  if (session->rank == 0) write_header(options->plan.one_side);
  for (int op = 0; op < operations; ++op) {
    if (!options->wanted[op]) continue;
    const int points = op == op_barrier ? 1 : options->size_count;
    for (int i = 0; i < points; ++i) {
      const size_t bytes = op == op_barrier ? 0 : options->sizes[i];
      for (int mode = mode_balanced; mode <= mode_batch; ++mode) {
        if (!options_want(options, (Mode)mode, bytes) || !fits(options, (Operation)op, bytes, session->ranks)) continue;
        if (options->bare && !bare_does((Operation)op, bytes)) continue;
        Point point;
        if (measure((Operation)op, bytes, (Mode)mode, &options->plan, data, line, &point)) return -1;
        if (mode == mode_balanced && !options->plan.oversubscribed && options->plan.one_side != side_pmpi)
          point.floor_us = copy_us(data, line, operation_moved((Operation)op, bytes, session->ranks));
        wrong += point.wrong != 0;
        if (session->rank == 0) report(session, (Operation)op, bytes, (Mode)mode, options->plan.one_side, &point);
      }
    }
  }
  return wrong;
}

static int fail(const Session* session, const char* why) {
  if (session->rank == 0) fprintf(stderr, "collective_bench: %s\n", why);
  return 2;
}

static int compare_collectives(const Session* session, Options* options) {
  options->plan.oversubscribed = session->ranks > session->cores;
  StartLine line;
  Data data;
  if (options->plan.root >= session->ranks) return fail(session, "--root is not a rank");
  Bare bare;
  const int sharing = options->plan.oversubscribed;
  if (start_line_open(&line, MPI_COMM_WORLD, sharing) || (options->bare && bare_open(&bare, MPI_COMM_WORLD, sharing)))
    return fail(session, "the ranks are not on one node, or it has no memory for them to share");
  int failed = data_open(&data, MPI_COMM_WORLD, largest_buffer(options, session->ranks)) != 0, wrong = -1;
  data.in_place = options->in_place;
  if (options->bare) data.bare = &bare;
  PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (!failed) wrong = measure_all(session, options, &data, &line);
  data_close(&data);
  if (data.bare) bare_close(&bare);
  start_line_close(&line);
  if (wrong < 0) return fail(session, "no memory for the buffers");
  return wrong ? fail(session, "results were wrong") : 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Session session = {0};
  Options options;
  int rank, code = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int parsed = parse_options(argc, argv, rank == 0, &options);
  if (parsed == 0) {
    open_session(&session, options.json);
    if (options.decline)
      measure_declining(MPI_COMM_WORLD, options.plan.budget_ms, session.accelerating, session.json);
    else
      code = compare_collectives(&session, &options);
    if (session.json) fclose(session.json);
  }
  MPI_Finalize();
  return parsed < 0 ? 2 : code;
}
