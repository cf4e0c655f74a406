#include "bench/options.hpp"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace stretto::bench {
namespace {

constexpr char help[] =
    "usage: mpirun -n N stretto-bench-ABI --mpi LIBRARY --json FILE [options]\n"
    "Times collectives as a program calls them (MPI_X) and as the MPI library does them (PMPI_X) in turn on the same buffers.\n"
    "`stretto bench` runs it and shows the results.\n"
    "  --mpi FILE           the MPI library to load\n"
    "  --json FILE          a JSON line per point goes there\n"
    "  --collectives LIST   such as allreduce,bcast (default: barrier,bcast,reduce,allreduce)\n"
    "  --sizes LIST|A:B:F   bytes of a block, with K or M: 8,1K,1M, or from A to B by factor F (default: 8:16M:4)\n"
    "  --mode MODE          single: one call from a common start; batch: calls back to back, the root moving on; loop: back to\n"
    "                       back by one root; auto: single, but where ranks outnumber cores batch up to the limit\n"
    "  --batch-limit BYTES  (default: 16K)\n"
    "  --budget MS          time to spend on a point (default: 200)\n"
    "  --least N            samples a side at least (default: 7)\n"
    "  --root RANK          (default: 0)\n"
    "  --keep-places        ranks are not given a core each, but stay where the launcher put them\n"
    "  --plain              MPI_X alone\n"
    "  --candidates         every algorithm of the preloaded Stretto, and PMPI_X\n"
    "  --also LIST          MPI_X and PMPI_X, and these algorithms of the preloaded Stretto\n"
    "  --arrival SHAPE      balanced, ascending, descending, first-delayed, last-delayed, random, K-late, half-late,\n"
    "                       node-late\n"
    "  --spreads LIST       the largest delay, as multiples of the time of a balanced call (random: of a message)\n"
    "                       (default: 0.5,1,2,10,20,50)\n"
    "  --of-call            random spreads are multiples of the time of a balanced call too\n"
    "  --most-delay MS      no rank comes later than that\n"
    "  --most-point MS      points of which the delays alone take longer are left out\n"
    "  --seed N             of random delays and places (default: 1)\n"
    "  --permute            ranks change places in the shape from call to call\n"
    "  --delays FILE        recorded delays instead of a shape: a call per line, ns per rank\n";

bool parse_bytes(const char* text, const char** end, size_t* bytes) {
  char* after;
  const uint64_t number = strtoull(text, &after, 10);
  if (after == text || number > uint64_t(1) << 40) return false;
  const int shift = *after == 'K' || *after == 'k' ? 10 : *after == 'M' || *after == 'm' ? 20 : 0;
  *bytes = size_t(number) << shift;
  *end = after + (shift != 0);
  return true;
}

bool add_size(Options* options, size_t bytes) {
  if (options->size_count == most_sizes || bytes < 4 || bytes > (size_t(1) << 30)) return false;
  options->sizes[options->size_count++] = bytes / 4 * 4;
  return true;
}

bool parse_range(size_t from, const char* text, Options* options) {
  size_t to, factor;
  if (!parse_bytes(text, &text, &to) || *text != ':' || !parse_bytes(text + 1, &text, &factor) || *text != '\0') return false;
  if (factor < 2 || from == 0 || from > to) return false;
  for (; from <= to; from *= factor)
    if (!add_size(options, from)) return false;
  return true;
}

bool parse_sizes(const char* text, Options* options) {
  options->size_count = 0;
  for (size_t bytes; parse_bytes(text, &text, &bytes); ++text) {
    if (*text == ':') return options->size_count == 0 && parse_range(bytes, text + 1, options);
    if (!add_size(options, bytes)) return false;
    if (*text != ',') return *text == '\0';
  }
  return false;
}

bool parse_spreads(const char* text, Options* options) {
  for (options->spread_count = 0; options->spread_count < most_spreads;) {
    char* end;
    const double value = strtod(text, &end);
    if (end == text || !(value >= 0) || value > 1e6) return false;
    options->spreads[options->spread_count++] = value;
    if (*end != ',') return *end == '\0';
    text = end + 1;
  }
  return false;
}

bool parse_collectives(const char* text, Options* options) {
  for (options->wanted_count = 0; options->wanted_count < most_wanted;) {
    const size_t length = strcspn(text, ",");
    const Collective* found = collective_named(text, length);
    if (found == nullptr) return false;
    options->wanted[options->wanted_count++] = found;
    if (text[length] == '\0') return true;
    text += length + 1;
  }
  return false;
}

bool parse_mode(const char* text, Options* options) {
  const char* const names[] = {"auto", "single", "batch", "loop"};
  for (int i = 0; i < 4; ++i)
    if (strcmp(text, names[i]) == 0) return options->mode = ModeChoice(i), true;
  return false;
}

bool parse_whole(const char* text, long least, long* value) {
  char* end;
  *value = strtol(text, &end, 10);
  return end != text && *end == '\0' && *value >= least;
}

bool parse_number(int letter, const char* text, Options* options) {
  long value = 0;
  const bool good = parse_whole(text, letter == 'n' ? 1 : 0, &value);
  if (letter == 'n') options->least = unsigned(value);
  if (letter == 'r') options->root = int(value);
  if (letter == 'e') options->pattern.seed = uint64_t(value);
  return good;
}

bool parse_one(int letter, const char* text, Options* options) {
  switch (letter) {
    case 'M':
      return options->mpi = text, true;
    case 'j':
      return options->json = text, true;
    case 'c':
      return parse_collectives(text, options);
    case 's':
      return parse_sizes(text, options);
    case 'm':
      return parse_mode(text, options);
    case 'l':
      return parse_bytes(text, &text, &options->batch_limit) && *text == '\0';
    case 'b':
      return (options->budget_ms = atof(text)) > 0;
    case 'p':
      return options->plain = true;
    case 'k':
      return options->keep_places = true;
    case 't':
      return options->candidates = true;
    case 'A':
      return options->also = text, true;
    case 'o':
      return options->of_call = true;
    case 'D':
      return (options->most_delay_ms = atof(text)) > 0;
    case 'P':
      return (options->most_point_ms = atof(text)) > 0;
    case 'a':
      return options->arrival = true, parse_shape(text, &options->pattern);
    case 'x':
      return parse_spreads(text, options);
    case 'u':
      return options->pattern.permuted = true;
    case 'd':
      options->pattern.shape = Shape::replay;
      return options->arrival = true, options->recorded = text, true;
    default:
      return parse_number(letter, text, options);
  }
}

constexpr option table[] = {{"keep-places", 0, nullptr, 'k'}, {"mpi", 1, nullptr, 'M'},        {"json", 1, nullptr, 'j'},
                            {"collectives", 1, nullptr, 'c'}, {"sizes", 1, nullptr, 's'},      {"mode", 1, nullptr, 'm'},
                            {"batch-limit", 1, nullptr, 'l'}, {"budget", 1, nullptr, 'b'},     {"least", 1, nullptr, 'n'},
                            {"root", 1, nullptr, 'r'},        {"plain", 0, nullptr, 'p'},      {"candidates", 0, nullptr, 't'},
                            {"arrival", 1, nullptr, 'a'},     {"spreads", 1, nullptr, 'x'},    {"seed", 1, nullptr, 'e'},
                            {"permute", 0, nullptr, 'u'},     {"delays", 1, nullptr, 'd'},     {"also", 1, nullptr, 'A'},
                            {"of-call", 0, nullptr, 'o'},     {"most-delay", 1, nullptr, 'D'}, {"help", 0, nullptr, 'h'},
                            {"most-point", 1, nullptr, 'P'},  {nullptr, 0, nullptr, 0}};

void set_defaults(Options* options) {
  parse_collectives("barrier,bcast,reduce,allreduce", options);
  parse_sizes("8:16M:4", options);
  parse_spreads("0.5,1,2,10,20,50", options);
}

}  // namespace

Parsed parse_options(int argc, char** argv, bool speak, Options* options) {
  set_defaults(options);
  opterr = speak;
  for (int letter, which = 0; (letter = getopt_long(argc, argv, "", table, &which)) != -1;) {
    if (letter == 'h') return speak ? fputs(help, stdout), Parsed::help : Parsed::help;
    if (letter == '?') return Parsed::wrong;  // getopt has said why
    if (parse_one(letter, optarg, options)) continue;
    if (speak) fprintf(stderr, "stretto-bench: cannot use --%s %s (see --help)\n", table[which].name, optarg ? optarg : "");
    return Parsed::wrong;
  }
  if (optind == argc && options->mpi != nullptr && options->json != nullptr) return Parsed::run;
  if (speak) fprintf(stderr, "stretto-bench: --mpi and --json are needed, and no other words (see --help)\n");
  return Parsed::wrong;
}

}  // namespace stretto::bench
