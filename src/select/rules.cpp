#include "select/rules.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <iterator>
#include <memory>
#include <new>
#include <string_view>

namespace stretto::select {
namespace {

using collective::Kind;
using std::string_view;

constexpr size_t largest_file = 1 << 20;

// The next word of a line; empty at its end or at a comment.
string_view next_word(string_view& line) {
  size_t begin = line.find_first_not_of(" \t\r");
  if (begin == string_view::npos || line[begin] == '#') return line = {};
  size_t end = line.find_first_of(" \t\r#", begin);
  string_view word = line.substr(begin, end == string_view::npos ? end : end - begin);
  line = end == string_view::npos ? string_view{} : line.substr(end);
  return word;
}

bool parse_number(string_view text, uint64_t* value) {
  size_t i = 0;
  for (*value = 0; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    if (*value > (uint64_t(1) << 53)) return false;
    *value = *value * 10 + uint64_t(text[i] - '0');
  }
  if (i == 0) return false;
  int shift = 0;
  if (i < text.size()) shift = text[i] == 'K' ? 10 : text[i] == 'M' ? 20 : text[i] == 'G' ? 30 : 0;
  if (shift) ++i;
  *value <<= shift;
  return i == text.size();
}

bool parse_interval(string_view text, Interval* interval) {
  *interval = {};
  size_t dots = text.find("..");
  if (dots == string_view::npos) return parse_number(text, &interval->from) && (interval->to = interval->from, true);
  string_view from = text.substr(0, dots), to = text.substr(dots + 2);
  if (!from.empty() && !parse_number(from, &interval->from)) return false;
  if (!to.empty() && !parse_number(to, &interval->to)) return false;
  return interval->from <= interval->to;
}

bool parse_kind(string_view word, Kind* kind) {
  for (int k = 0; k < collective::kind_count; ++k)
    if (word == name(Kind(k))) return *kind = Kind(k), true;
  return false;
}

bool parse_library(string_view name, Rule* rule) {
  Library library;
  if (!library_named(name.data(), name.size(), &library)) return false;
  rule->library = int8_t(library);
  return true;
}

bool parse_cpu(string_view name, Rule* rule) {
  Cpu cpu;
  if (!cpu_named(name.data(), name.size(), &cpu)) return false;
  rule->cpu = int8_t(cpu);
  return true;
}

bool parse_algorithm(string_view word, Rule* rule) {
  if (word == "mpi") return rule->algorithm = -1, !rule->fresh;
  bool across = rule->nodes.from > 1;
  if (!across && rule->nodes.to > 1) return false;  // no algorithm is for both
  for (int i = 0; i < collective::row_count; ++i) {
    if (collective::spans_nodes(i) != across || collective::kind_of_row(i) != rule->kind) continue;
    if (word != collective::name_of_row(i)) continue;
    rule->algorithm = int16_t(i);
    return true;
  }
  return false;
}

bool parse_condition(string_view word, Rule* rule) {
  size_t equals = word.find('=');
  if (equals == string_view::npos) return false;
  string_view key = word.substr(0, equals), value = word.substr(equals + 1);
  if (key == "bytes") return parse_interval(value, &rule->bytes);
  if (key == "ranks") return parse_interval(value, &rule->ranks);
  if (key == "domains") return parse_interval(value, &rule->domains);
  if (key == "nodes") return parse_interval(value, &rule->nodes);
  if (key == "library") return parse_library(value, rule);
  if (key == "cpu") return parse_cpu(value, rule);
  if (key == "fresh") return rule->fresh = value == "yes";
  if (value != "yes" && value != "no") return false;
  if (key == "crowded") return rule->crowded = value == "yes", true;
  if (key == "arena") return rule->arena = value == "yes", true;
  return false;
}

// One line that is not empty: kind, conditions, algorithm.
bool parse_line(string_view word, string_view line, Rule* rule) {
  if (!parse_kind(word, &rule->kind)) return false;
  word = next_word(line);
  for (string_view next = next_word(line); !next.empty(); word = next, next = next_word(line))
    if (!parse_condition(word, rule)) return false;
  if ((rule->cpu >= 0 || rule->fresh) && rule->nodes.to > 1) return false;
  return parse_algorithm(word, rule);
}

bool parse_digest(string_view text, uint64_t* value) {
  *value = 0;
  for (char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    *value = *value << 4 | uint64_t(digit);
  }
  return text.size() == 16;
}

// What stands after `tuned`: the three digests, in this order.
bool parse_tuned(string_view line, Rules* rules) {
  const struct {
    string_view key;
    uint64_t* value;
  } parts[] = {{"build=", &rules->build}, {"machine=", &rules->machine}, {"mpi=", &rules->mpi}};
  for (const auto& part : parts) {
    const string_view word = next_word(line);
    if (!word.starts_with(part.key) || !parse_digest(word.substr(part.key.size()), part.value)) return false;
  }
  if (rules->tuned || rules->count != 0) return false;
  return rules->tuned = next_word(line).empty();
}

uint64_t hash(const char* text, size_t length) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; ++i) h = (h ^ uint8_t(text[i])) * 0x100000001b3u;
  return h;
}

}  // namespace

Library library_of(const char* version) {
  const string_view words(version ? version : "");
  if (words.starts_with("Open MPI")) return Library::openmpi;
  if (words.starts_with("MPICH Version")) return Library::mpich;
  if (words.starts_with("Intel(R) MPI")) return Library::intelmpi;
  return Library::other;
}

// Where `name` stands among the names of an enumeration's values.
template <typename Value, size_t count>
static bool value_named(const string_view (&names)[count], string_view name, Value* value) {
  for (size_t i = 0; i < count; ++i)
    if (name == names[i]) return *value = Value(i), true;
  return false;
}

bool library_named(const char* name, size_t length, Library* library) {
  constexpr string_view names[] = {"other", "openmpi", "mpich", "intelmpi"};
  return value_named(names, {name, length}, library);
}

bool cpu_named(const char* name, size_t length, Cpu* cpu) {
  constexpr string_view names[] = {"other", "amd", "intel"};
  return value_named(names, {name, length}, cpu);
}

Status parse_rules(const char* text, size_t length, Rules* rules) {
  *rules = {};
  rules->fingerprint = hash(text, length);
  string_view rest(text, length);
  for (int number = 1; !rest.empty(); ++number) {
    size_t end = rest.find('\n');
    string_view line = rest.substr(0, end);
    rest = end == string_view::npos ? string_view{} : rest.substr(end + 1);
    string_view word = next_word(line);
    if (word.empty()) continue;
    if (word == "tuned") {
      if (!parse_tuned(line, rules)) return invalid("not what rules were tuned with", number);
      continue;
    }
    if (rules->count == Rules::capacity) return invalid("too many rules", number);
    Rule rule;
    rule.line = number;
    if (!parse_line(word, line, &rule)) return invalid("not a rule", number);
    rules->rows[rules->count++] = rule;
  }
  if (rules->count == 0) return invalid("no rules in it", 0);
  return Status::good();
}

Status load_rules(const char* path, Rules* rules) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(strerror(errno), errno);
  std::unique_ptr<char[]> text(new (std::nothrow) char[largest_file]);
  size_t length = 0;
  ssize_t n = text ? 1 : -1;
  while (n > 0 && length < largest_file) {
    n = read(fd, text.get() + length, largest_file - length);
    if (n < 0 && errno == EINTR)
      n = 1;
    else if (n > 0)
      length += size_t(n);
  }
  int error = errno;
  close(fd);
  if (n < 0) return refused(text ? strerror(error) : "no memory", error);
  if (length == largest_file) return invalid("larger than 1 MiB", 0);
  return parse_rules(text.get(), length, rules);
}

// Measured on two cores that share a last-level cache; `./dev bench` prints what they give on a machine. Those for several
// domains follow from the number of bytes that cross between them (docs/topology.md). Where a limit
// of size lies between Stretto and MPI, a gather whose ranks disagree about sizes would hang: it has none. Over more than 4 nodes
// what was simulated counts (bench/scale): the longer a chain the later its end. A communicator's first calls leave its cells
// alone as far as may be: memory that is touched for the first time costs more than a page is worth in many calls (2 ranks, the
// first Bcast of 512 KiB: 4.5 ms through cells, 0.1 ms without).
const char* default_rules() {
  return "barrier    domains=2.. ranks=16.. crowded=no  levels\n"
         "barrier                          flat\n"
         "bcast      bytes=..1072 domains=2.. ranks=16.. crowded=no  levels\n"
         "bcast      bytes=..1072          flat\n"
         "bcast      bytes=20K.. ranks=2 crowded=no  handover\n"
         "bcast      bytes=8K.. ranks=2 domains=2.. crowded=no  handover\n"
         "bcast      bytes=16K.. arena=yes domains=2.. crowded=no  tree\n"
         "bcast      bytes=16K.. arena=yes crowded=no  direct\n"
         "bcast      bytes=1M.. arena=yes  direct\n"
         "bcast      bytes=32K.. domains=2.. ranks=4.. crowded=no  domains\n"
         "bcast      bytes=256K.. ranks=..8 crowded=no  adaptive\n"
         "bcast                            staged\n"
         "reduce     bytes=..1072 domains=2.. ranks=16.. crowded=no  levels\n"
         "reduce     bytes=..1072          flat\n"
         "reduce     bytes=256K.. arena=yes ranks=..8  adaptive_direct\n"
         "reduce     bytes=256K.. arena=yes  presence_direct\n"
         "reduce     bytes=16K.. arena=yes crowded=no  direct\n"
         "reduce     bytes=64K.. domains=2.. ranks=8.. crowded=no  domains\n"
         "reduce     bytes=8K.. ranks=2 crowded=no  adaptive\n"
         "reduce     bytes=256K.. ranks=..8  adaptive\n"
         "reduce     ranks=..3             gather\n"
         "reduce     bytes=..256K ranks=..8 crowded=yes  gather\n"
         "reduce     bytes=..16K           gather\n"
         "reduce                           slices\n"
         "allreduce  bytes=..1072 domains=2.. ranks=16.. crowded=no  levels\n"
         "allreduce  bytes=..1072          flat\n"
         "allreduce  bytes=256K.. arena=yes ranks=..8  adaptive_direct\n"
         "allreduce  bytes=256K.. arena=yes  presence_direct\n"
         "allreduce  bytes=64K.. arena=yes crowded=yes ranks=..8  adaptive_direct\n"
         "allreduce  bytes=64K.. arena=yes crowded=yes  presence_direct\n"
         "allreduce  bytes=8K.. arena=yes crowded=no  direct\n"
         "allreduce  bytes=..256K ranks=2  pair\n"
         "allreduce  bytes=..4K            gather\n"
         "allreduce  bytes=..8K ranks=..8 crowded=yes  gather\n"
         "allreduce  bytes=..16K ranks=..4 crowded=yes  gather\n"
         "allreduce  bytes=64K.. domains=2.. ranks=8.. crowded=no  domains\n"
         "allreduce  bytes=256K.. ranks=..8  adaptive\n"
         "allreduce                        slices\n"
         "gather     bytes=..1K            flat\n"
         "gather     bytes=16K.. arena=yes crowded=no  direct\n"
         "gather     bytes=128K.. arena=yes  direct\n"
         "gather     bytes=20K.. ranks=2 crowded=no  handover\n"
         "gather     bytes=8K.. ranks=2 domains=2.. crowded=no  handover\n"
         "gather     bytes=128K.. ranks=..8  adaptive\n"
         "gather                           staged\n"
         "scatter    bytes=..1K            flat\n"
         "scatter    ranks=2 crowded=no    handover\n"
         "scatter    bytes=16K.. arena=yes crowded=no  direct\n"
         "scatter    bytes=512K.. arena=yes  direct\n"
         "scatter    bytes=768K.. ranks=..8  adaptive\n"
         "scatter    bytes=768K.. crowded=yes  direct\n"
         "scatter    bytes=256K.. ranks=..8 library=mpich  adaptive\n"
         "scatter    library=mpich         staged\n"
         "scatter    bytes=512K.. crowded=yes cpu=intel  mpi\n"
         "scatter    bytes=256K.. ranks=..8  adaptive\n"
         "scatter                          staged\n"
         "allgather  bytes=..1K            flat\n"
         "allgather  bytes=..96K ranks=2 crowded=no  pair\n"
         "allgather  bytes=16K.. arena=yes crowded=no  direct\n"
         "allgather  ranks=2 crowded=no    pair\n"
         "allgather  bytes=128K.. arena=yes  direct\n"
         "allgather  bytes=64K.. ranks=..8 library=mpich  adaptive\n"
         "allgather  library=mpich         staged\n"
         "allgather  bytes=512K.. crowded=yes cpu=intel  mpi\n"
         "allgather  bytes=64K.. ranks=..8  adaptive\n"
         "allgather                        staged\n"
         "alltoall   bytes=..1K            flat\n"
         "alltoall   bytes=16K.. arena=yes crowded=no  direct\n"
         "alltoall   bytes=256K.. arena=yes  direct\n"
         "alltoall   ranks=2 crowded=no    pair\n"
         "alltoall   bytes=512K.. ranks=6..8  adaptive\n"
         "alltoall   bytes=512K.. ranks=6.. crowded=yes  direct\n"
         "alltoall   bytes=128K.. ranks=..8 library=mpich  adaptive\n"
         "alltoall   library=mpich         staged\n"
         "alltoall   bytes=128K.. crowded=yes cpu=intel  mpi\n"
         "alltoall   bytes=128K.. ranks=..8  adaptive\n"
         "alltoall                         staged\n"
         "gatherv    ranks=2 crowded=no    handover\n"
         "gatherv    arena=yes             sized\n"
         "gatherv                          staged\n"
         "scatterv   ranks=2 crowded=no    handover\n"
         "scatterv   crowded=yes           sized\n"
         "scatterv   arena=yes             sized\n"
         "scatterv                         staged\n"
         "allgatherv bytes=..1K            flat\n"
         "allgatherv bytes=16K.. arena=yes crowded=no  direct\n"
         "allgatherv ranks=2 crowded=no    pair\n"
         "allgatherv bytes=128K.. arena=yes  direct\n"
         "allgatherv bytes=64K.. ranks=..8 library=mpich  adaptive\n"
         "allgatherv library=mpich         staged\n"
         "allgatherv bytes=512K.. crowded=yes cpu=intel  mpi\n"
         "allgatherv bytes=64K.. ranks=..8  adaptive\n"
         "allgatherv                       staged\n"
         "alltoallv  ranks=2 crowded=no    pair\n"
         "alltoallv  ranks=6.. crowded=yes sized\n"
         "alltoallv  arena=yes             sized\n"
         "alltoallv                        staged\n"
         "alltoallw  ranks=2 crowded=no    pair\n"
         "alltoallw  ranks=6.. crowded=yes sized\n"
         "alltoallw  arena=yes             sized\n"
         "alltoallw                        staged\n"
         "reduce_scatter bytes=..1072      flat\n"
         "reduce_scatter bytes=16K.. arena=yes crowded=no  direct\n"
         "reduce_scatter bytes=256K.. arena=yes  direct\n"
         "reduce_scatter bytes=256K.. ranks=..8  adaptive\n"
         "reduce_scatter                   staged\n"
         "reduce_scatter_block bytes=..1072  flat\n"
         "reduce_scatter_block bytes=16K.. arena=yes crowded=no  direct\n"
         "reduce_scatter_block bytes=256K.. arena=yes  direct\n"
         "reduce_scatter_block bytes=256K.. ranks=..8  adaptive\n"
         "reduce_scatter_block             staged\n"
         "scan       bytes=..64 crowded=yes library=openmpi  mpi\n"
         "scan       bytes=32K.. arena=yes crowded=no  direct\n"
         "scan       bytes=128K.. arena=yes  direct\n"
         "scan       bytes=..1072 crowded=no  flat\n"
         "scan                             staged\n"
         "exscan     bytes=20K.. ranks=2 crowded=no  handover\n"
         "exscan     bytes=8K.. ranks=2 domains=2.. crowded=no  handover\n"
         "exscan     bytes=..64 crowded=yes library=openmpi  mpi\n"
         "exscan     bytes=32K.. arena=yes crowded=no  direct\n"
         "exscan     bytes=128K.. arena=yes  direct\n"
         "exscan     bytes=..1072 crowded=no  flat\n"
         "exscan                           staged\n"
         "bcast      bytes=4K.. ranks=2 fresh=yes  direct\n"
         "bcast      bytes=4K..256K ranks=..16 fresh=yes  direct\n"
         "bcast      bytes=256K.. ranks=3..8 arena=no fresh=yes  staged\n"
         "reduce     bytes=4K.. ranks=..16 arena=yes fresh=yes  direct\n"
         "reduce     bytes=4K.. ranks=2 fresh=yes  pair\n"
         "reduce     bytes=4K..256K ranks=..16 fresh=yes  direct\n"
         "reduce     bytes=256K.. ranks=..8 fresh=yes  gather\n"
         "allreduce  bytes=4K.. ranks=3..16 arena=yes fresh=yes  direct\n"
         "allreduce  bytes=256K.. ranks=2 arena=yes fresh=yes  direct\n"
         "allreduce  bytes=256K.. ranks=2 fresh=yes  pair\n"
         "allreduce  bytes=4K..256K ranks=3..16 fresh=yes  direct\n"
         "allreduce  bytes=256K.. ranks=3.. fresh=yes  slices\n"
         "gather     bytes=4K.. ranks=..16 fresh=yes  direct\n"
         "scatter    bytes=8K.. ranks=..16 fresh=yes  direct\n"
         "allgather  bytes=64K.. ranks=2 fresh=yes  direct\n"
         "allgather  bytes=8K.. ranks=3..16 fresh=yes  direct\n"
         "alltoall   bytes=128K.. ranks=2 fresh=yes  direct\n"
         "alltoall   bytes=16K.. ranks=3..16 fresh=yes  direct\n"
         "gatherv    ranks=2 crowded=no fresh=yes  direct\n"
         "scatterv   ranks=2 crowded=no fresh=yes  direct\n"
         "allgatherv bytes=64K.. ranks=2 fresh=yes  direct\n"
         "allgatherv bytes=8K.. ranks=3..16 fresh=yes  direct\n"
         "alltoallv  ranks=2 crowded=no fresh=yes  direct\n"
         "alltoallw  ranks=2 crowded=no fresh=yes  direct\n"
         "reduce_scatter       bytes=4K.. ranks=..16 fresh=yes  direct\n"
         "reduce_scatter_block bytes=4K.. ranks=..16 fresh=yes  direct\n"
         "barrier    nodes=2..             leader\n"
         "bcast      nodes=3..8 bytes=64K..  chain\n"
         "bcast      nodes=3..64 bytes=256K..  chain\n"
         "bcast      nodes=3..256 bytes=1M..  chain\n"
         "bcast      nodes=3.. bytes=4M..  chain\n"
         "bcast      nodes=2.. bytes=..256K  leader\n"
         "bcast      nodes=2..             pipelined\n"
         "reduce     nodes=3..128 bytes=1M..  chain\n"
         "reduce     nodes=3.. bytes=4M..  chain\n"
         "reduce     nodes=64.. bytes=512..16K  leader\n"
         "reduce     nodes=16.. bytes=1K..4K  leader\n"
         "reduce     nodes=3..             rsa\n"
         "reduce     nodes=2 bytes=..256K  rsa\n"
         "reduce     nodes=2               pipelined\n"
         "allreduce  nodes=64.. bytes=512..512K  leader\n"
         "allreduce  nodes=32.. bytes=1K..128K  leader\n"
         "allreduce  nodes=16.. bytes=1K..4K  leader\n"
         "allreduce  nodes=32.. bytes=128K..  pipelined\n"
         "allreduce  nodes=16.. bytes=256K..  pipelined\n"
         "allreduce  nodes=2.. bytes=..64K rsa\n"
         "allreduce  nodes=2.. bytes=..1M  leaders\n"
         "allreduce  nodes=2..             streamed\n"
         "allgather  nodes=2.. bytes=128K..  leaders\n"
         "allgather  nodes=2.. bytes=16K.. ranks=8..  leaders\n"
         "allgather  nodes=2.. bytes=16K..  leader\n"
         "allgather  nodes=2.. ranks=8..   leader\n"
         "allgatherv nodes=2.. bytes=128K..  leaders\n"
         "allgatherv nodes=2.. ranks=8..   leaders\n"
         "allgatherv nodes=2.. bytes=16K..  leader\n"
         "alltoall   nodes=2..4 ranks=16.. bytes=..4K  leaders\n"
         "alltoall   nodes=2..4 ranks=24.. bytes=..6K  leaders\n"
         "gather     nodes=2.. bytes=16K..  leader\n"
         "gather     nodes=2.. ranks=8..   leader\n"
         "scatter    nodes=2 bytes=1M..    mpi\n"
         "scatter    nodes=2..             leader\n"
         "reduce_scatter       nodes=2..   leaders\n"
         "reduce_scatter_block nodes=2..   leaders\n"
         "scan       nodes=2..             leader\n"
         "exscan     nodes=2..             leader\n";
}

}  // namespace stretto::select
