#include "bench/session.hpp"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "bench/ticks.hpp"
#include "platform/shared_memory.hpp"

namespace stretto::bench {
namespace {

constexpr size_t most_block = size_t(1) << 30;

// The CPUs of the ranks of one node.
struct NodeCpus {
  platform::CpuSet all;
  bool share = false;  // ranks must share a core: all together, or those with equal sets
  bool alike = true;   // all have the same set
};

NodeCpus cpus_of_node(const platform::CpuSet* cpus, const int* node_of, int ranks, int node) {
  NodeCpus found;
  int here = 0;
  const platform::CpuSet* first = nullptr;
  for (int i = 0; i < ranks; ++i) {
    if (node_of[i] != node) continue;
    ++here;
    if (first == nullptr) first = &cpus[i];
    found.alike = found.alike && cpus[i] == *first;
    found.all.merge(cpus[i]);
    int same = 0;
    for (int k = 0; k < ranks; ++k) same += node_of[k] == node && cpus[k] == cpus[i];
    found.share = found.share || same > cpus[i].count();
  }
  found.share = found.share || here > found.all.count();
  return found;
}

// This process to the CPU number `place` of the set; best effort.
void pin(const platform::CpuSet& cpus, int place) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (cpus.has(cpu) && place-- == 0) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

const char* Session::open() {
  mpi_.library.Comm_rank(mpi_.world, &rank_);
  mpi_.library.Comm_size(mpi_.world, &ranks_);
  if (options_.root >= ranks_) return "--root is not a rank";
  if (options_.pattern.shape == Shape::some && options_.pattern.late >= ranks_) return "--arrival: all ranks would be late";
  nodes_ = find_nodes(mpi_, rank_, ranks_);
  if (!nodes_.node_of) return "no memory";
  options_.pattern.node_of = nodes_.node_of.get();
  options_.pattern.nodes = nodes_.count;
  if (options_.pattern.shape == Shape::node && nodes_.count == 1) return "--arrival node-late: all ranks are on one node";
  clock_ = open_ticks(nodes_.count == 1);
  preload_ = find_preload();
  if ((options_.candidates || options_.also != nullptr) &&
      (preload_.algorithms == nullptr || preload_.next_rules == nullptr || preload_.default_rules == nullptr))
    return "Stretto is not loaded";
  // Files are opened by rank 0; whether it could is known to all.
  if (rank_ == 0) json_ = fopen(options_.json, "we");
  if (from_rank_0(mpi_, json_ != nullptr ? 1 : 0) == 0) return "the file for the results cannot be written";
  mpi_.program.Barrier(mpi_.world);  // a library that starts with the first collective has now started
  describe_setup();
  if (const char* problem = line_.open(mpi_, rank_, ranks_, nodes_, cpus_, crowded_)) return problem;
  hop_ns_ = from_rank_0(mpi_, line_.hop_ns());
  machine_.open(rank_, ranks_, cores_);
  return nullptr;
}

// Finds out whether the ranks have a core each. Those that all may run on the same CPUs are given one each, where these suffice.
bool Session::find_cores(platform::CpuSet* cpus) {
  auto exchange = [&] {
    const platform::CpuSet mine = platform::allowed_cpus();
    mpi_.library.Allgather(&mine, int(sizeof mine), mpi_.byte, cpus, int(sizeof mine), mpi_.byte, mpi_.world);
    bool alike = true;
    crowded_ = false;
    cores_ = 0;
    for (int node = 0; node < nodes_.count; ++node) {
      const NodeCpus found = cpus_of_node(cpus, nodes_.node_of.get(), ranks_, node);
      crowded_ = crowded_ || found.share;
      alike = alike && found.alike;
      cores_ += found.all.count();
      if (node == nodes_.own) cpus_ = found.all;
    }
    return alike;
  };
  const bool alike = exchange();
  if (options_.keep_places || crowded_ || !alike || ranks_ == 1) return false;
  pin(cpus_, nodes_.local);
  exchange();
  return true;
}

void Session::describe_setup() {
  std::unique_ptr<platform::CpuSet[]> cpus(new (std::nothrow) platform::CpuSet[size_t(ranks_)]);
  if (!cpus) mpi_.library.Abort(mpi_.world, 2);
  const bool pinned = find_cores(cpus.get());
  static char library[MPI_MAX_LIBRARY_VERSION_STRING + 1];
  int length = 0;
  mpi_.library.Get_library_version(library, &length);
  library[strcspn(library, "\n")] = '\0';
  if (json_ != nullptr)
    write_setup(json_, {library, ranks_, nodes_.count, cores_, crowded_, pinned, clock_, preload_, cpus.get()});
}

void Session::close() {
  line_.close();
  if (json_ != nullptr) fclose(json_);
}

const char* Session::run() {
  for (int i = 0; i < options_.wanted_count; ++i)
    if (const char* problem = run_collective(*options_.wanted[i])) return problem;
  return nullptr;
}

const char* Session::run_collective(const Collective& c) {
  if (options_.candidates || options_.also != nullptr)
    if (const char* problem = add_candidates(c)) return problem;
  const bool no_data = c.receives == Part::none;
  const char* problem = nullptr;
  for (int i = 0; i < (no_data ? 1 : options_.size_count) && problem == nullptr; ++i) {
    first_size_ = i == 0;
    problem = run_size(c, no_data ? 0 : options_.sizes[i]);
  }
  drop_candidates();
  return problem;
}

// All ranks' buffers of a point in half of the memory.
bool Session::fits(const Collective& c, size_t bytes) const {
  const size_t each = bytes * (blocks(c.sends, ranks_) + blocks(c.receives, ranks_));
  return bytes * blocks(c.receives, ranks_) <= most_block && each * size_t(nodes_.most) <= platform::physical_memory() / 2;
}

Mode Session::mode_for(size_t bytes) const {
  if (options_.arrival) return Mode::single;
  if (options_.mode == ModeChoice::automatic) return crowded_ && bytes <= options_.batch_limit ? Mode::batch : Mode::single;
  if (options_.mode == ModeChoice::loop) return Mode::loop;
  return options_.mode == ModeChoice::batch ? Mode::batch : Mode::single;
}

int Session::sides_for(const Collective& c, size_t bytes, Side* sides) const {
  const size_t given = bytes * std::max<size_t>(blocks(c.sends, ranks_), 1);  // as rules count
  int count = 0;
  if (!options_.candidates) sides[count++] = {"mpi", &mpi_.program, mpi_.world};
  if (!options_.plain) sides[count++] = {"pmpi", &mpi_.library, mpi_.world};
  for (int i = 0; i < candidate_count_; ++i)
    if (given <= candidates_[i].most_bytes) sides[count++] = {candidates_[i].name, &mpi_.program, candidates_[i].comm};
  return count;
}

Plan Session::plan_for(const Side* sides, int count) const {
  Plan plan;
  plan.budget_ms = options_.budget_ms;
  plan.settle_ms = options_.budget_ms * (first_size_ ? 2 : 0.25);
  plan.least = options_.least;
  plan.root = options_.root;
  plan.crowded = crowded_;
  plan.sides = sides;
  plan.side_count = count;
  return plan;
}

// Of several nodes nothing is known that would hold for their network.
double Session::floor_us(const Collective& c, size_t bytes) {
  if (nodes_.count > 1) return 0;
  return hop_ns_ / 1000 + machine_.copy_us(bytes * blocks(c.moved, ranks_));
}

const char* Session::finish(const Described& described, const Plan& plan, const Point& point) {
  if (point.failed) return "no memory for the samples";
  if (json_ != nullptr) write_point(json_, described, plan, point);
  return nullptr;
}

const char* Session::run_size(const Collective& c, size_t bytes) {
  Data data;
  data.rank = rank_;
  data.ranks = ranks_;
  const bool room = fits(c, bytes) && open_data(c, bytes, mpi_.float32, &data);
  if (sum_over_ranks(mpi_, room ? 0 : 1) != 0) {
    if (json_ != nullptr) write_skipped(json_, c, bytes, "too large for this machine");
    return nullptr;
  }
  if (options_.arrival) return run_arrival(c, data, bytes);
  Side sides[most_sides];
  const int count = sides_for(c, bytes, sides);
  const Plan plan = plan_for(sides, count);
  const Mode mode = mode_for(bytes);
  const double floor = floor_us(c, bytes);
  const Point point = measure(mpi_, c, data, mode, plan, line_);
  return finish({&c, bytes, ranks_, mode, nullptr, 0, 0, floor, 0}, plan, point);
}

// The side of the MPI library's own calls, or the only one.
int Session::library_side() const {
  return options_.plain || options_.candidates ? 0 : 1;
}

// First balanced, which gives the unit of the spreads: the time of the MPI library's own call, or of a message.
const char* Session::run_arrival(const Collective& c, Data& data, size_t bytes) {
  Side sides[most_sides];
  const int count = sides_for(c, bytes, sides);
  const Plan plan = plan_for(sides, count);
  const double floor = floor_us(c, bytes);
  const Point point = measure(mpi_, c, data, Mode::single, plan, line_);
  const double balanced_us = from_rank_0(mpi_, point.failed ? 0 : point.side[library_side()].us.median);
  const double bound = bound_us(c, bytes, plan, point);
  const char* problem = finish({&c, bytes, ranks_, Mode::single, "balanced", 0, balanced_us, floor, bound}, plan, point);
  const Shape shape = options_.pattern.shape;
  if (problem != nullptr || shape == Shape::balanced) return problem;
  if (shape == Shape::replay) return run_spread(c, data, bytes, 1, 0);
  const double unit = shape == Shape::random && !options_.of_call ? machine_.message_us(bytes) : balanced_us;
  for (int i = 0; i < options_.spread_count && problem == nullptr; ++i)
    problem = run_spread(c, data, bytes, options_.spreads[i], unit);
  return problem;
}

const char* Session::run_spread(const Collective& c, Data& data, size_t bytes, double spread, double unit_us) {
  Side sides[most_sides];
  Plan plan = plan_for(sides, sides_for(c, bytes, sides));
  plan.pattern = &options_.pattern;
  plan.spread_us = spread * unit_us;
  if (options_.most_delay_ms > 0) plan.spread_us = std::min(plan.spread_us, options_.most_delay_ms * 1000);
  char shape[32];
  const Pattern& pattern = options_.pattern;
  if (pattern.shape == Shape::some)
    snprintf(shape, sizeof shape, "%d-late", pattern.late);
  else
    snprintf(shape, sizeof shape, "%s", shape_names[int(pattern.shape)]);
  const double delays_ms = plan.spread_us / 1000 * plan.side_count * plan.least;
  if (options_.most_point_ms > 0 && delays_ms > options_.most_point_ms) {
    char why[96];
    snprintf(why, sizeof why, "%s x%g: delays of %.0f ms are too long for this --budget", shape, spread, plan.spread_us / 1000);
    if (json_ != nullptr) write_skipped(json_, c, bytes, why);
    return nullptr;
  }
  const Point point = measure(mpi_, c, data, Mode::single, plan, line_);
  const double bound = bound_us(c, bytes, plan, point);
  return finish({&c, bytes, ranks_, Mode::single, shape, spread, unit_us, floor_us(c, bytes), bound}, plan, point);
}

// Two line transfers, every rank's share of adding what came too late to be added before, and what each must obtain.
double Session::bound_us(const Collective& c, size_t bytes, const Plan& plan, const Point& point) {
  if (nodes_.count > 1) return 0;
  const double copy = floor_us(c, bytes) - hop_ns_ / 1000;
  const size_t vector = bytes * blocks(c.sends, ranks_);
  const double add = reduces(c) ? machine_.add_us(vector) : 0;
  double share = 0;
  if (rank_ == 0 && plan.side_count > 0 && point.side[0].typical) {
    const Seen* seen = point.side[0].typical.get();
    double last = 0;
    int together = 0;
    for (int r = 0; r < ranks_; ++r) last = std::max(last, seen[r].planned);
    for (int r = 0; r < ranks_; ++r) together += seen[r].planned >= last - add - copy;
    share = double(std::min(together, ranks_ - 1)) / ranks_;
  }
  return 2 * hop_ns_ / 1000 + from_rank_0(mpi_, share) * add + copy;
}

// Whether an algorithm is one of those asked for.
bool Session::wants(const char* name, size_t length) const {
  size_t word;
  for (const char* text = options_.also; !options_.candidates; text += word + 1) {
    word = strcspn(text, ",");
    if (word == length && strncmp(text, name, length) == 0) return true;
    if (text[word] == '\0') return false;
  }
  return true;
}

// The preload's algorithms for this collective, each on a communicator of its own.
const char* Session::add_candidates(const Collective& c) {
  const size_t length = strlen(c.name);
  for (const char* line = preload_.algorithms(); *line != '\0'; line += strcspn(line, "\n") + 1) {
    if (strncmp(line, c.name, length) != 0 || line[length] != '\t') continue;
    const char* name = line + length + 1;
    const size_t name_length = strcspn(name, "\t\n");
    char* end;
    const size_t most_bytes = strtoull(name + name_length, &end, 10);
    const bool over_nodes = strncmp(end, "\tnodes", 6) == 0;
    if (over_nodes != (nodes_.count > 1) || !wants(name, name_length)) continue;
    if (candidate_count_ == most_sides - 2) break;
    if (!add_candidate(c.name, length, name, name_length, most_bytes)) return "a rule for an algorithm was refused";
  }
  return nullptr;
}

bool Session::add_candidate(const char* kind, size_t kind_length, const char* algorithm, size_t length, size_t most_bytes) {
  Candidate& candidate = candidates_[candidate_count_];
  // Inside the nodes of an algorithm over several the built-in rules hold.
  const char* inside = nodes_.count > 1 ? preload_.default_rules() : "";
  const size_t bytes = 256 + strlen(inside);
  std::unique_ptr<char[]> rules(new (std::nothrow) char[bytes]);
  if (!rules) return false;
  snprintf(rules.get(), bytes, "%.*s %s%.*s\n%s", int(kind_length), kind, nodes_.count > 1 ? "nodes=2.. " : "", int(length),
           algorithm, inside);
  snprintf(candidate.name, sizeof candidate.name, "%.*s", int(length), algorithm);
  candidate.most_bytes = most_bytes;
  if (preload_.next_rules(rules.get()) != 0) return false;
  mpi_.library.Comm_dup(mpi_.world, &candidate.comm);
  mpi_.program.Barrier(candidate.comm);  // the first collective is when Stretto learns of a communicator
  preload_.next_rules(nullptr);
  ++candidate_count_;
  return true;
}

void Session::drop_candidates() {
  for (; candidate_count_ > 0; --candidate_count_) mpi_.program.Comm_free(&candidates_[candidate_count_ - 1].comm);
}

}  // namespace stretto::bench
