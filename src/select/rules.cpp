#include "select/rules.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <iterator>
#include <memory>
#include <new>
#include <string_view>

#include "platform/parse.hpp"

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
  if (rule->scattered && word != "ordered") return false;
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
  if (key == "per_node") return parse_interval(value, &rule->per_node);
  if (key == "library") return parse_library(value, rule);
  if (key == "cpu") return parse_cpu(value, rule);
  if (key == "fresh") return rule->fresh = value == "yes";
  if (key == "scattered") return rule->scattered = value == "yes";
  if (value != "yes" && value != "no") return false;
  if (key == "crowded") return rule->crowded = value == "yes", true;
  if (key == "arena") return rule->arena = value == "yes", true;
  if (key == "offload") return rule->offload = value == "yes", true;
  return false;
}

// Why a word is no condition.
const char* condition_problem(string_view word) {
  const string_view key = word.substr(0, word.find('='));
  for (const char* interval : {"bytes", "ranks", "domains", "nodes", "per_node"})
    if (key == interval) return "should be FROM..TO behind its =, either of them absent or a number, with K, M or G";
  if (key == "crowded" || key == "arena" || key == "offload") return "should be yes or no behind its =";
  if (key == "fresh" || key == "scattered") return "should be yes behind its =, or not be there";
  if (key == "library") return "should be openmpi, mpich, intelmpi or other behind its =";
  if (key == "cpu") return "should be amd, intel or other behind its =";
  return "is no condition (bytes, ranks, nodes, per_node, domains, crowded, arena, offload, scattered, fresh, library, cpu)";
}

const char* algorithm_problem(string_view word, const Rule& rule) {
  if (word == "mpi") return "does not go with fresh=yes";
  if (rule.scattered) return "cannot do what is scattered: ordered and mpi can";
  if (rule.nodes.from <= 1 && rule.nodes.to > 1) return "cannot be for one node and for several: begin with nodes=2..";
  return rule.nodes.from > 1 ? "is no algorithm for that between nodes" : "is no algorithm for that within a node";
}

// One line that is not empty: kind, conditions, algorithm. Null, or what is wrong with *word, which is its first word to begin
// with.
const char* parse_line(string_view* word, string_view line, Rule* rule) {
  if (!parse_kind(*word, &rule->kind)) return "is no collective";
  string_view last = next_word(line);
  if (last.empty()) return "needs an algorithm, or mpi";
  for (string_view next = next_word(line); !next.empty(); last = next, next = next_word(line))
    if (!parse_condition(last, rule)) return *word = last, condition_problem(last);
  if ((rule->cpu >= 0 || rule->fresh) && rule->nodes.to > 1) return *word = "cpu= or fresh=", "is for one node only";
  if (rule->nodes.from < 2) {
    constexpr const char* several = "is for several nodes only: add nodes=2..";
    if (rule->per_node.from > 0 || rule->per_node.to < UINT64_MAX) return *word = "per_node=", several;
    if (rule->offload >= 0) return *word = "offload=", several;
    if (rule->scattered) return *word = "scattered=", several;
  }
  return parse_algorithm(last, rule) ? nullptr : (*word = last, algorithm_problem(last, *rule));
}

// The word as far as it can be shown in a line.
Status not_a_rule(string_view word, const char* why, int line, Rules* rules) {
  char shown[33];
  const size_t length = word.copy(shown, sizeof shown - 1);
  for (size_t i = 0; i < length; ++i) shown[i] = shown[i] >= ' ' && shown[i] <= '~' ? shown[i] : '?';
  snprintf(rules->problem, sizeof rules->problem, "not a rule: %.*s %s", int(length), shown, why);
  return invalid(rules->problem, line);
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
    if (const char* why = parse_line(&word, line, &rule)) return not_a_rule(word, why, number, rules);
    rules->rows[rules->count++] = rule;
  }
  if (rules->count == 0) return invalid("no rules in it", 0);
  return Status::good();
}

Status load_rules(const char* path, Rules* rules) {
  std::unique_ptr<char[]> text(new (std::nothrow) char[largest_file]);
  if (text == nullptr) return refused("no memory", ENOMEM);
  size_t length;
  STRETTO_TRY(platform::read_file(path, text.get(), largest_file, &length));
  if (length == largest_file) return invalid("larger than 1 MiB", 0);
  return parse_rules(text.get(), length, rules);
}

}  // namespace stretto::select
