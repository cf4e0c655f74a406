#include "options.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: mpirun -n N collective_bench [options]\n"
    "Times MPI_X and PMPI_X in turn on the same buffers. One node.\n"
    "  --collectives LIST   of allreduce,reduce,bcast,barrier (default: these), gather,scatter,allgather,alltoall,\n"
    "                       reduce_scatter_block,scan,exscan,reduce_scatter,gatherv,scatterv,allgatherv,alltoallv\n"
    "  --sizes LIST|A:B:F   bytes of the vector or of a block, with K or M: 8,1K,1M, or from A to B by factor F (default: "
    "8:64M:4)\n"
    "  --most BYTES         leave out points at which a rank's buffer of all blocks would be larger\n"
    "  --mode MODE          balanced, batch, both or auto (default: auto: balanced; with more ranks than cores batch\n"
    "                       up to the limit and balanced above)\n"
    "                       balanced: one call from a common start; max exit - max entry over ranks\n"
    "                                 (with more ranks than cores: - min entry)\n"
    "                       batch:    calls back to back, the root moving on; time per call\n"
    "  --batch-limit BYTES  no batches above this size (default: 16K)\n"
    "  --budget MS          time to spend on a point (default: 200)\n"
    "  --least N            samples a side at least (default: 7)\n"
    "  --side SIDE          mpi, pmpi or both (default: both)\n"
    "  --root RANK          of rooted collectives in balanced mode (default: 0)\n"
    "  --in-place           Allreduce and Reduce with MPI_IN_PLACE\n"
    "  --bare               instead of MPI_X: plain stores in shared memory (barrier, bcast, reduce, allreduce to 1K)\n"
    "  --decline            instead: what calls that pass through or decline cost\n"
    "  --json FILE          write a JSON line per point there\n";

static int parse_bytes(const char* text, size_t* bytes) {
  char* end;
  *bytes = strtoull(text, &end, 10);
  if (end == text) return -1;
  if (*end == 'K' || *end == 'k')
    *bytes <<= 10, ++end;
  else if (*end == 'M' || *end == 'm')
    *bytes <<= 20, ++end;
  return *end && *end != ',' && *end != ':' ? -1 : 0;
}

static int add_size(Options* options, size_t bytes) {
  if (options->size_count == max_sizes || bytes < 4 || bytes > ((size_t)1 << 30)) return -1;
  options->sizes[options->size_count++] = bytes / 4 * 4;
  return 0;
}

static int parse_sizes(const char* text, Options* options) {
  size_t from, to, factor;
  const char* second = strchr(text, ':');
  const char* third = second ? strchr(second + 1, ':') : NULL;
  options->size_count = 0;
  if (second) {
    if (!third || parse_bytes(text, &from) || parse_bytes(second + 1, &to) || parse_bytes(third + 1, &factor)) return -1;
    if (factor < 2 || from == 0) return -1;
    for (; from <= to; from *= factor)
      if (add_size(options, from)) return -1;
    return options->size_count ? 0 : -1;
  }
  for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
    if (parse_bytes(text, &from) || add_size(options, from)) return -1;
  return 0;
}

static int parse_collectives(char* text, Options* options) {
  memset(options->wanted, 0, sizeof options->wanted);
  for (char* word = strtok(text, ","); word; word = strtok(NULL, ",")) {
    Operation operation = operation_named(word);
    if (operation == operations) return -1;
    options->wanted[operation] = 1;
  }
  return 0;
}

static int parse_mode(const char* text, Options* options) {
  int both = strcmp(text, "both") == 0;
  options->automatic = strcmp(text, "auto") == 0;
  options->balanced = both || strcmp(text, "balanced") == 0;
  options->batch = both || strcmp(text, "batch") == 0;
  return options->automatic || options->balanced || options->batch ? 0 : -1;
}

int options_want(const Options* options, Mode mode, size_t bytes) {
  const int small = bytes <= options->batch_limit;
  if (options->automatic) return (mode == mode_batch) == (options->plan.oversubscribed && small);
  return mode == mode_batch ? options->batch && small : options->balanced;
}

static int parse_side(const char* text, Options* options) {
  static const char* const names[] = {"mpi", "pmpi", "both"};
  for (int side = 0; side <= sides; ++side) {
    options->plan.one_side = side;
    if (strcmp(text, names[side]) == 0) return 0;
  }
  return -1;
}

static int parse_one(int letter, Options* options) {
  switch (letter) {
    case 'c':
      return parse_collectives(optarg, options);
    case 's':
      return parse_sizes(optarg, options);
    case 'M':
      return parse_bytes(optarg, &options->most);
    case 'm':
      return parse_mode(optarg, options);
    case 'l':
      return parse_bytes(optarg, &options->batch_limit);
    case 'b':
      return (options->plan.budget_ms = atof(optarg)) > 0 ? 0 : -1;
    case 'n':
      return (options->plan.least = (unsigned)atoi(optarg)) > 0 ? 0 : -1;
    case 'S':
      return parse_side(optarg, options);
    case 'r':
      return (options->plan.root = atoi(optarg)) >= 0 ? 0 : -1;
    case 'i':
      options->in_place = 1;
      return 0;
    case 'd':
      options->decline = 1;
      return 0;
    case 'B':
      options->bare = 1;
      options->plan.one_side = side_mpi;
      return 0;
    case 'j':
      options->json = optarg;
      return 0;
    default:
      return -1;
  }
}

int parse_options(int argc, char** argv, int speak, Options* options) {
  static const struct option table[] = {
      {"collectives", 1, 0, 'c'}, {"sizes", 1, 0, 's'}, {"most", 1, 0, 'M'}, {"mode", 1, 0, 'm'}, {"batch-limit", 1, 0, 'l'},
      {"budget", 1, 0, 'b'},      {"least", 1, 0, 'n'}, {"side", 1, 0, 'S'}, {"root", 1, 0, 'r'}, {"in-place", 0, 0, 'i'},
      {"decline", 0, 0, 'd'},     {"json", 1, 0, 'j'},  {"bare", 0, 0, 'B'}, {"help", 0, 0, 'h'}, {0, 0, 0, 0}};
  *options = (Options){.wanted = {1, 1, 1, 1},
                       .automatic = 1,
                       .batch_limit = 16384,
                       .most = SIZE_MAX,
                       .plan = {.budget_ms = 200, .least = 7, .one_side = sides}};
  parse_sizes("8:64M:4", options);
  opterr = speak;
  for (int letter, which = 0; (letter = getopt_long(argc, argv, "", table, &which)) != -1;) {
    if (letter == 'h') {
      if (speak) fputs(help, stdout);
      return 1;
    }
    if (letter == '?') return -1; /* getopt has said why */
    if (parse_one(letter, options) == 0) continue;
    if (speak) fprintf(stderr, "collective_bench: cannot use --%s %s (see --help)\n", table[which].name, optarg);
    return -1;
  }
  return 0;
}
