// The rules of this process, and the part of the public interface by which `stretto tune` measures and explains.
#include "shim/tuning.hpp"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "collective/board.hpp"
#include "select/selector.hpp"
#include "shim/context.hpp"
#include "shim/mpi.hpp"
#include "shim/process.hpp"
#include "stretto/stretto.h"

#define STRETTO_PUBLIC __attribute__((visibility("default")))

namespace stretto::shim {
namespace {

char tuned_file[1024];

const char* mpi_version() {
  static char text[8192];  // as much as any MPI writes
  int length = 0;
  if (library().flavor != own_flavor() || !mpi().Get_library_version.present()) return nullptr;
  return mpi().Get_library_version(text, &length) == MPI_SUCCESS ? text : nullptr;
}

// Before the machine is looked at: whether this user has measured anything anywhere.
bool has_tuned() {
  char path[sizeof tuned_file];
  if (!select::tuned_path({}, path, sizeof path)) return false;
  *strrchr(path, '/') = '\0';
  return access(path, X_OK) == 0;
}

// Rules for the communicators to come; kept, since communicators refer to them.
bool set_next_rules(const char* text, int* line) {
  Context& c = context();
  *line = 0;
  if (text == nullptr) return c.policy.rules = &c.rules, true;
  std::unique_ptr<select::Rules> rules(new (std::nothrow) select::Rules);
  if (!rules) return false;
  const Status status = select::parse_rules(text, strlen(text), rules.get());
  *line = status.detail;
  if (!status.ok()) return false;
  c.policy.rules = rules.release();
  return true;
}

bool kind_named(const char* name, collective::Kind* kind) {
  for (int k = 0; k < collective::kind_count; ++k)
    if (strcmp(name, collective::name(collective::Kind(k))) == 0) return *kind = collective::Kind(k), true;
  return false;
}

// Why MPI does it though a rule names an algorithm, and the rule's line; null: no rule does.
const char* why_left(const select::Rules& rules, const select::Facts& facts, int rule, int* line) {
  static char why[120];
  if ((facts.nodes > 1 ? facts.per_node : facts.ranks) > collective::max_team) {
    *line = 0;
    snprintf(why, sizeof why, "Stretto takes at most %d ranks of a node", collective::max_team);
    return why;
  }
  const int beyond = rule < 0 ? select::beyond_reach(rules, facts) : -1;
  if (beyond < 0) return nullptr;
  *line = rules.rows[beyond].line;
  const collective::Algorithm& a = collective::algorithms[rules.rows[beyond].algorithm];
  snprintf(why, sizeof why, "%s does no more than %zu bytes, and no other rule holds", a.name, a.max_bytes);
  return why;
}

}  // namespace

select::Library mpi_library() {
  return select::library_of(mpi_version());
}

const select::Surroundings& surroundings() {
  static const select::Surroundings here = select::look_around(mpi_version());
  return here;
}

void use_built_in(select::Rules* rules) {
  const char* text = select::default_rules();
  const Status status = select::parse_rules(text, strlen(text), rules);
  if (!status.ok()) *rules = {};  // a test holds that they read
}

Status choose_rules(const char* setting, select::Rules* rules, const char** path) {
  *path = setting;
  const bool built_in = strcmp(setting, "builtin") == 0;
  const bool asked = *setting != '\0' && !built_in;
  if (!asked) {
    *path = "";
    if (built_in || !has_tuned() || !select::tuned_path(surroundings().key, tuned_file, sizeof tuned_file) ||
        access(tuned_file, F_OK) != 0)
      return use_built_in(rules), Status::good();
    *path = tuned_file;
  }
  STRETTO_TRY(select::load_rules(*path, rules));
  return rules->tuned ? select::fits(*rules, surroundings().key) : asked ? Status::good() : invalid("no line `tuned`", 1);
}

}  // namespace stretto::shim

extern "C" {

STRETTO_PUBLIC const char* stretto_algorithms(void) {
  using namespace stretto::collective;
  static char text[row_count * 80];
  if (*text != '\0') return text;
  size_t used = 0;
  for (const Algorithm& a : algorithms)
    used += size_t(snprintf(text + used, sizeof text - used, "%s\t%s\t%zu\n", name(a.kind), a.name, a.max_bytes));
  for (const ClusterAlgorithm& a : cluster_algorithms)
    if (a.run != ordered)  // of use where no other can do it
      used += size_t(snprintf(text + used, sizeof text - used, "%s\t%s\t%zu\tnodes\n", name(a.kind), a.name, SIZE_MAX));
  return text;
}

STRETTO_PUBLIC const char* stretto_default_rules(void) {
  return stretto::select::default_rules();
}

STRETTO_PUBLIC int stretto_tuning(const char** path, const char** header, const char** about) {
  static char file[1024], line[128];
  const stretto::select::Surroundings& here = stretto::shim::surroundings();
  if (!stretto::select::tuned_path(here.key, file, sizeof file)) *file = '\0';
  stretto::select::write_header(here.key, line);
  *path = file;
  *header = line;
  *about = here.about;
  return 0;
}

STRETTO_PUBLIC int stretto_next_rules(const char* text) {
  int line;
  if (!stretto::shim::attached()) return -1;
  return stretto::shim::set_next_rules(text, &line) ? 0 : line > 0 ? line : -1;
}

STRETTO_PUBLIC int stretto_explain(const char* text, const stretto_question* question, const char** algorithm, int* line) {
  using namespace stretto;
  static char mpi[] = "mpi", problem[sizeof select::Rules::problem];
  select::Facts facts{};
  *algorithm = mpi;
  *line = 0;
  if (!shim::kind_named(question->collective, &facts.kind)) return -1;
  std::unique_ptr<select::Rules> rules(new (std::nothrow) select::Rules);
  if (!rules) return -1;
  const char* source = text != nullptr ? text : select::default_rules();
  const Status status = select::parse_rules(source, strlen(source), rules.get());
  *line = status.detail;
  if (!status.ok()) return snprintf(problem, sizeof problem, "%s", status.what), *algorithm = problem, 1;
  facts.bytes = question->bytes;
  facts.ranks = question->ranks;
  facts.crowded = question->crowded != 0;
  facts.arena = question->arena != 0;
  facts.fresh = question->fresh != 0;
  facts.nodes = std::max(question->nodes, 1);
  facts.per_node = facts.nodes > 1 ? (facts.ranks + facts.nodes - 1) / facts.nodes : 0;
  if (question->library != nullptr && !select::library_named(question->library, strlen(question->library), &facts.library))
    return -1;
  facts.cpu = cpu_here();
  const select::Selection selection = select::choose(*rules, facts);
  *line = selection.rule < 0 ? 0 : rules->rows[selection.rule].line;
  if (selection.algorithm >= 0) *algorithm = collective::name_of_row(selection.algorithm);
  const char* left = shim::why_left(*rules, facts, selection.rule, line);
  return left == nullptr ? 0 : (*algorithm = left, 2);
}

}  // extern "C"
