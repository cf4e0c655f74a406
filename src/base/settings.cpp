#include "base/settings.hpp"

#include <stdlib.h>
#include <string.h>

#include <initializer_list>

namespace stretto {
namespace {

constexpr char prefix[] = "STRETTO_";

// The one table. The order is that of the fields it fills.
constexpr SettingRow rows[] = {
    {"STRETTO_ACCELERATE", "on|off", "on", "take over collectives; off: count calls only"},
    {"STRETTO_JOB", "text", "", "identifies the job, equal on all its ranks (set by stretto run)"},
    {"STRETTO_RECORD_DIR", "path", "", "folder for the per-rank records (set by stretto run); empty: keep no file"},
    {"STRETTO_RULES", "path", "",
     "rules file that chooses algorithms; builtin: the rules of this build; empty: what stretto tune has measured here, else "
     "those"},
    {"STRETTO_TRANSPORT", "auto|shm|cma", "auto",
     "how large messages travel: by the rules, or always staged, or always by cross-memory attach"},
    {"STRETTO_WAIT", "auto|spin|yield|futex", "auto", "how ranks wait: auto decides from allowed CPUs against ranks"},
    {"STRETTO_ISA", "text", "auto", "instruction set of the kernels: auto, x86-64-v4, x86-64-v3, x86-64-v2, baseline"},
    {"STRETTO_FAULT", "text", "", "for tests: make cross-memory attach misbehave, e.g. delay=20us,refuse=3,cut=100"},
    {"STRETTO_LOG", "error|warning|info|debug", "warning", "which messages go to standard error"},
    {"STRETTO_MEMORY_MIB", "count", "0", "most shared memory per node for staging, in MiB; 0: 1 GiB or an eighth of the memory"},
    {"STRETTO_JOIN_TIMEOUT_MS", "count", "5000",
     "how long MPI_Init waits for ranks that do not run Stretto before going on without it"},
    {"STRETTO_PROFILE", "off|aggregate|full", "off",
     "trace communication: aggregate: sums and a sample of the collectives; full: every call (set by stretto profile)"},
    {"STRETTO_TRACE_MIB", "count", "512", "how large a rank's trace file may grow, in MiB; what comes later is counted only"},
    {"STRETTO_ITERATIONS", "A:B", "", "trace calls one by one only in iterations A to B, counted from 0; empty: always"},
    {"STRETTO_ITERATION_CALLS", "count", "0",
     "an iteration begins with each so many-th collective on MPI_COMM_WORLD; 0: with each MPI_Pcontrol(3)"},
    {"STRETTO_NCCL_NEXT_PLUGIN", "text", "",
     "another profiler plugin for NCCL, which Stretto's then tells everything; named as NCCL_PROFILER_PLUGIN would"},
    {"STRETTO_ARENA", "on|off", "off", "large blocks of memory come from an arena that peers map (set by stretto run --arena)"},
    {"STRETTO_ARENA_KIB", "count", "64", "with the arena: blocks of at least this many KiB come from it"},
    {"STRETTO_TOPOLOGY", "path", "",
     "file that says where CPUs or ranks stand, instead of what the system says (docs/topology.md)"},
    {"STRETTO_DOMAIN", "numa|socket|cache|none", "numa",
     "what ranks share that count as near: algorithms in two levels go by it"},
    {"STRETTO_ORDER", "ranks|domains|arrival", "ranks",
     "order of reductions: by rank alone, with the same bits in every run; the ranks of each domain first where that is faster; "
     "or as they arrive"},
    {"STRETTO_READERS", "count", "4", "most ranks that read one rank's buffer at a time by cross-memory attach; 0: no limit"},
    {"STRETTO_NODES", "off|auto|promised", "auto",
     "collectives that span nodes: auto: taken over once all nodes have met; promised: every rank of the job surely runs "
     "Stretto"},
    {"STRETTO_MEETING", "text", "", "where the nodes of a job meet, as address:port, several parted by / (set by stretto run)"},
    {"STRETTO_PROGRESS", "calls|thread", "calls",
     "who goes on with nonblocking collectives: MPI's calls, and a thread when none came for a millisecond; or that thread "
     "always, in jobs over several nodes with MPI_THREAD_MULTIPLE and for their collectives too"},
    {"STRETTO_TURNS", "count", "0",
     "take turns with MPI, so many collectives of a communicator each (set by stretto compare --one-run); 0: take over all"},
    {"STRETTO_SESSIONS", "auto|shared|own", "auto",
     "under MPICH's Hydra (read by stretto run): shared: ranks on mpiexec's node that share CPUs have one session; own: "
     "one each; auto: shared where nothing else computes when the job is started"},
    {"STRETTO_NODES_AFTER", "count", "64",
     "collectives on a communicator over nodes that are left to MPI before Stretto prepares it; for large ones it does so at "
     "once"},
    {"STRETTO_OFFLOAD", "auto|on|off", "auto",
     "whether MPI's collectives between nodes are done by the network or a library that knows it (SHARP, HCOLL, UCC), so that "
     "reductions are left to them there: auto: where the environment asks Open MPI or MPICH for HCOLL or UCC"},
};
constexpr int row_count = int(sizeof rows / sizeof rows[0]);

// Whether `value` is one of the words of a type such as "auto|shm|cma".
bool is_word_of(const char* type, const char* value) {
  size_t length = strlen(value);
  for (const char* word = type; word != nullptr; word = strchr(word, '|') ? strchr(word, '|') + 1 : nullptr) {
    size_t word_length = strcspn(word, "|");
    if (word_length == length && strncmp(word, value, length) == 0) return true;
  }
  return false;
}

bool parse_count(const char* value, uint64_t* count) {
  if (*value < '0' || *value > '9') return false;
  char* end = nullptr;
  *count = strtoull(value, &end, 10);
  return *end == '\0' && *count <= (uint64_t(1) << 40);
}

// "A:B" with A <= B; empty for all.
bool parse_iterations(const char* value, IterationRange* range) {
  *range = {};
  if (*value == '\0') return true;
  char first[24] = "";
  const char* colon = strchr(value, ':');
  if (colon == nullptr || size_t(colon - value) >= sizeof first) return false;
  memcpy(first, value, size_t(colon - value));
  return parse_count(first, &range->first) && parse_count(colon + 1, &range->last) && range->first <= range->last;
}

bool acceptable(const SettingRow& row, const char* value) {
  if (strcmp(row.type, "text") == 0 || strcmp(row.type, "path") == 0) return true;
  uint64_t ignored;
  if (strcmp(row.type, "count") == 0) return parse_count(value, &ignored);
  IterationRange unused;
  if (strcmp(row.type, "A:B") == 0) return parse_iterations(value, &unused);
  return is_word_of(row.type, value);
}

void assign(int row, const char* value, Settings* s) {
  switch (row) {
    case 0:
      s->accelerate = strcmp(value, "on") == 0;
      break;
    case 1:
      s->job = value;
      break;
    case 2:
      s->record_dir = value;
      break;
    case 3:
      s->rules = value;
      break;
    case 4:
      s->transport = value;
      break;
    case 5:
      s->wait = value;
      break;
    case 6:
      s->isa = value;
      break;
    case 7:
      s->fault = value;
      break;
    case 8:
      s->log = value;
      break;
    case 9:
      parse_count(value, &s->memory_mib);
      break;
    case 10:
      parse_count(value, &s->join_timeout_ms);
      break;
    case 11:
      s->profile = value;
      break;
    case 12:
      parse_count(value, &s->trace_mib);
      break;
    case 13:
      parse_iterations(value, &s->iterations);
      break;
    case 14:
      parse_count(value, &s->iteration_calls);
      break;
    case 15:
      s->nccl_next_plugin = value;
      break;
    case 16:
      s->arena = strcmp(value, "on") == 0;
      break;
    case 17:
    case 26:
      break;  // read by libstretto_arena.so alone, or by stretto run
    case 18:
      s->topology = value;
      break;
    case 19:
      s->domain = value;
      break;
    case 20:
      s->order = value;
      break;
    case 21:
      parse_count(value, &s->readers);
      break;
    case 22:
      s->nodes = value;
      break;
    case 23:
      s->meeting = value;
      break;
    case 24:
      s->progress = value;
      break;
    case 25:
      parse_count(value, &s->turns);
      break;
    case 27:
      parse_count(value, &s->nodes_after);
      break;
    case 28:
      s->offload = value;
      break;
  }
}

int find_row(const char* name, size_t length) {
  for (int i = 0; i < row_count; ++i)
    if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0) return i;
  return -1;
}

uint64_t mix(uint64_t hash, const char* text) {
  for (; *text; ++text) hash = (hash ^ uint8_t(*text)) * 0x100000001b3u;
  return (hash ^ 0xff) * 0x100000001b3u;
}

}  // namespace

const SettingRow* settings_table(int* count) {
  *count = row_count;
  return rows;
}

Status read_settings(char** environment, Settings* settings, const char** offender) {
  for (int i = 0; i < row_count; ++i) assign(i, rows[i].fallback, settings);
  Status first;
  *offender = nullptr;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (strncmp(*entry, prefix, sizeof prefix - 1) != 0) continue;
    const char* equals = strchr(*entry, '=');
    if (equals == nullptr) continue;
    int row = find_row(*entry, size_t(equals - *entry));
    Status status = row < 0                             ? invalid("unknown setting")
                    : acceptable(rows[row], equals + 1) ? Status::good()
                                                        : invalid(rows[row].type);
    if (status.ok()) assign(row, equals + 1, settings);
    if (status.ok() || !first.ok()) continue;
    first = status;
    *offender = *entry;
  }
  return first;
}

// Only what changes the ranks' common decisions: not the log level, the record, the profile or the job's name.
uint64_t fingerprint(const Settings& s) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char* text : {s.transport, s.wait, s.fault, s.domain, s.order, s.nodes}) hash = mix(hash, text);
  hash = (hash ^ uint64_t(s.arena)) * 0x100000001b3u;
  for (uint64_t number : {s.readers, s.turns, s.nodes_after}) hash = (hash ^ number) * 0x100000001b3u;
  return (hash ^ s.memory_mib) * 0x100000001b3u;
}

const char* settings_text() {
  static char text[8192];
  if (text[0] != '\0') return text;
  static char building[sizeof text];
  size_t used = 0;
  auto append = [&](const char* part, char end) {
    size_t length = strlen(part);
    if (used + length + 2 > sizeof building) return;
    memcpy(building + used, part, length);
    used += length;
    building[used++] = end;
  };
  for (const SettingRow& row : rows) {
    append(row.name, '\t');
    append(row.type, '\t');
    append(row.fallback, '\t');
    append(row.help, '\n');
  }
  building[used] = '\0';
  memcpy(text, building, used + 1);
  return text;
}

}  // namespace stretto
