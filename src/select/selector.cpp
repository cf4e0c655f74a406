#include "select/selector.hpp"

#include <string.h>

namespace stretto::select {
namespace {

using collective::Direct;

bool holds(const Rule& rule, const Facts& facts) {
  return rule.kind == facts.kind && rule.fresh == facts.fresh && rule.scattered == facts.scattered &&
         rule.bytes.has(facts.bytes) && rule.ranks.has(uint64_t(facts.ranks)) && rule.nodes.has(uint64_t(facts.nodes)) &&
         rule.per_node.has(uint64_t(facts.per_node)) && rule.domains.has(uint64_t(facts.domains)) &&
         (rule.crowded < 0 || bool(rule.crowded) == facts.crowded) && (rule.arena < 0 || bool(rule.arena) == facts.arena) &&
         (rule.offload < 0 || bool(rule.offload) == facts.offload) &&
         (rule.library < 0 || Library(rule.library) == facts.library) && (rule.cpu < 0 || Cpu(rule.cpu) == facts.cpu);
}

// The last algorithm of the kind that is as direct and needs staging, i.e. that carries large messages.
int large_message_algorithm(collective::Kind kind, Direct direct) {
  for (int i = collective::algorithm_count - 1; i >= 0; --i) {
    const collective::Algorithm& a = collective::algorithms[i];
    if (a.kind == kind && a.needs_stage && a.direct == direct) return i;
  }
  return -1;
}

// STRETTO_TRANSPORT overrides how an algorithm for large messages moves its data, not whether one runs.
int with_travel(int chosen, Travel travel) {
  const collective::Algorithm& a = collective::algorithms[chosen];
  const Direct direct = travel == Travel::direct ? Direct::always : Direct::never;
  if (travel == Travel::by_rules || !a.needs_stage || a.direct == direct) return chosen;
  const int other = large_message_algorithm(a.kind, direct);
  return other < 0 ? chosen : other;
}

// What runs instead of `chosen` where no buffer lies in an arena, which shows too late for MPI to do it. -1: the same.
int without_arena(const Rules& rules, Facts facts, int chosen) {
  facts.arena = false;
  int other = choose(rules, facts).algorithm;
  if (other < 0 && facts.fresh) {
    facts.fresh = false;
    other = choose(rules, facts).algorithm;
  }
  if (other < 0) other = large_message_algorithm(facts.kind, Direct::never);
  return other == chosen ? -1 : other;
}

}  // namespace

int any_size_algorithm(collective::Kind kind) {
  for (int i = 0; i < collective::algorithm_count; ++i) {
    const collective::Algorithm& a = collective::algorithms[i];
    if (a.kind == kind && !a.needs_stage && a.max_bytes == collective::any_size) return i;
  }
  return large_message_algorithm(kind, Direct::never);
}

Selection choose(const Rules& rules, const Facts& facts) {
  for (int i = 0; i < rules.count; ++i) {
    const Rule& rule = rules.rows[i];
    if (!holds(rule, facts)) continue;
    if (rule.algorithm < 0) return {-1, Reason::mpi_preferred, i};
    if (collective::spans_nodes(rule.algorithm)) return {rule.algorithm, Reason::none, i};
    if (facts.bytes > collective::algorithms[rule.algorithm].max_bytes) continue;  // a rule beyond its algorithm's reach
    Selection selection{with_travel(rule.algorithm, facts.travel), Reason::none, i};
    if (rule.arena > 0 && facts.travel == Travel::by_rules) selection.unmapped = without_arena(rules, facts, selection.algorithm);
    return selection;
  }
  return {-1, Reason::mpi_preferred};
}

int beyond_reach(const Rules& rules, const Facts& facts) {
  for (int i = 0; i < rules.count; ++i) {
    const int row = rules.rows[i].algorithm;
    if (row < 0 || collective::spans_nodes(row) || !holds(rules.rows[i], facts)) continue;
    if (facts.bytes > collective::algorithms[row].max_bytes) return i;
  }
  return -1;
}

bool depends_on_size(const Rules& rules, Facts facts) {
  for (int i = 0; i < rules.count; ++i) {
    const Interval& bytes = rules.rows[i].bytes;
    facts.bytes = bytes.from;
    if (holds(rules.rows[i], facts)) return bytes.from != 0 || bytes.to != UINT64_MAX;
  }
  return false;
}

}  // namespace stretto::select
