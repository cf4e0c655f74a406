// Allreduce over nodes: each node reduces, the nodes' leaders combine, each node is given the result (the three phases of
// Alizadeh et al. 2022, 5.3). 2 (N-1)/N m bytes leave each of N nodes, or m where N = 2.
//   leader     one rank of each node; between nodes MPI's allreduce
//   rsa        one rank of each node; between nodes a reduce-scatter and an allgather, arithmetic by Stretto (Hierarchical-RSA)
//   leaders    every rail carries slices of its own: reduced to its rank, combined on the rail, given out by its rank
//   streamed   by two rails, for long vectors four; while rounds of slices are between nodes the next are reduced and former ones
//              given out
//   domains    as streamed, but by as many rails as each node has domains (NUMA nodes, sockets), and two at least
//   pipelined  as streamed, but between nodes MPI's nonblocking allreduce, which its network may do by itself
#include "collective/hierarchy/across.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

struct Plan {
  int leaders;   // slices in a round, one each; spread evenly over the rails
  size_t slice;  // elements
  enum { at_once, streamed, by_mpi } between;
  uint32_t ahead;  // rounds between nodes while later ones are reduced
};

class ClusterAllreduce {
 public:
  ClusterAllreduce(Cluster& cluster, const Request& request, const Plan& plan)
      : cluster_(cluster), place_(cluster.place), request_(request), plan_(plan), led_(led()) {}

  Status run() {
    size_t per_round = plan_.slice * size_t(plan_.leaders);
    uint32_t rounds = uint32_t((request_.count + per_round - 1) / per_round);
    for (uint32_t i = 0; i < rounds + plan_.ahead; ++i) {
      if (i < rounds) STRETTO_TRY(reduce(i));
      if (i < rounds) STRETTO_TRY(start(i));
      if (i >= 1 && i - 1 < rounds) STRETTO_TRY(turn(i - 1));
      if (i >= plan_.ahead) STRETTO_TRY(give_out(i - plan_.ahead));
    }
    return Status::good();
  }

 private:
  static constexpr int none = -1;

  Range slice(uint32_t round, int leader) const {
    size_t begin = std::min((size_t(round) * size_t(plan_.leaders) + size_t(leader)) * plan_.slice, request_.count);
    return {begin, std::min(begin + plan_.slice, request_.count)};
  }
  char* output(const Range& range) const { return static_cast<char*>(request_.output) + range.begin * request_.element; }

  Status reduce(uint32_t round) {
    for (int leader = 0; leader < plan_.leaders; ++leader) {
      Range range = slice(round, leader);
      if (range.size() == 0) break;
      Request phase = request_;
      phase.kind = Kind::reduce;
      phase.root = rail(leader);
      phase.count = range.size();
      phase.input = static_cast<const char*>(request_.input) + range.begin * request_.element;
      phase.output = place_.leads(rail(leader)) ? output(range) : nullptr;
      STRETTO_TRY(cluster_.run_in_node(phase));
    }
    return Status::good();
  }

  static int slot(uint32_t round) { return int(round % Links::slots); }
  int rail(int leader) const { return leader * place_.rails / plan_.leaders; }
  // This rank's number among the leaders; none: it is not one.
  int led() const {
    const int leader = (place_.local * plan_.leaders + place_.rails - 1) / place_.rails;
    return leader < plan_.leaders && rail(leader) == place_.local ? leader : none;
  }
  bool leads_in(uint32_t round) const { return led_ != none && slice(round, led_).size() > 0; }

  Status start(uint32_t round) {
    if (!leads_in(round)) return Status::good();
    Range own = slice(round, led_);
    if (plan_.between == Plan::at_once) return allreduce_across(cluster_, request_, output(own), own.size());
    if (plan_.between == Plan::streamed) return start_across(cluster_, request_, output(own), own.size(), slot(round));
    return cluster_.links->start_allreduce(request_, output(own), own.size(), slot(round));
  }

  Status turn(uint32_t round) {
    if (!leads_in(round) || plan_.between != Plan::streamed) return Status::good();
    Range own = slice(round, led_);
    return turn_across(cluster_, request_, output(own), own.size(), slot(round));
  }

  Status finish(uint32_t round) {
    if (!leads_in(round) || plan_.between == Plan::at_once) return Status::good();
    return plan_.between == Plan::streamed ? finish_across(cluster_, slot(round)) : cluster_.links->finish(slot(round));
  }

  Status give_out(uint32_t round) {
    STRETTO_TRY(finish(round));
    for (int leader = 0; leader < plan_.leaders; ++leader) {
      Range range = slice(round, leader);
      if (range.size() == 0) break;
      Request phase;
      phase.kind = Kind::bcast;
      phase.root = rail(leader);
      phase.count = range.size() * request_.element;
      phase.input = phase.output = output(range);
      STRETTO_TRY(cluster_.run_in_node(phase));
    }
    return Status::good();
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const Plan plan_;
  const int led_;
};

// Whole lines of at most `bytes`, at least one element.
size_t elements_in(size_t bytes, const Request& request) {
  return std::max<size_t>(bytes / request.element, 1);
}

// As many leaders as have a line each, `all` at most, with slices as equal as `most` bytes allow.
Plan shared_by_leaders(const Request& request, int all, size_t most) {
  size_t lines = (request.bytes() + cache_line - 1) / cache_line;
  int leaders = int(std::clamp<size_t>(lines, 1, size_t(all)));
  size_t share = round_up((request.bytes() + size_t(leaders) - 1) / size_t(leaders), cache_line);
  size_t slice = elements_in(std::min(share, most), request);
  size_t equal = (request.count + size_t(leaders) - 1) / size_t(leaders);
  if (equal * request.element <= most) slice = std::max(slice, equal);
  return {leaders, slice, Plan::at_once, 0};
}

constexpr size_t one_call = size_t(1) << 30;

}  // namespace

Status allreduce_rsa(Cluster& cluster, const Request& request) {
  return ClusterAllreduce(cluster, request, {1, elements_in(slice_most(cluster), request), Plan::at_once, 0}).run();
}

Status allreduce_leader(Cluster& cluster, const Request& request) {
  if (!mpi_can(request)) return allreduce_rsa(cluster, request);
  return ClusterAllreduce(cluster, request, {1, elements_in(one_call, request), Plan::by_mpi, 0}).run();
}

Status allreduce_leaders(Cluster& cluster, const Request& request) {
  return ClusterAllreduce(cluster, request, shared_by_leaders(request, cluster.place.rails, slice_most(cluster))).run();
}

// In several rounds, where slices are then still worth a message: while the only one is between nodes, nobody is at work in them.
static Status streamed_by(Cluster& cluster, const Request& request, int leaders) {
  const size_t rounds = request.bytes() >= 512 << 10 ? 4 : request.bytes() >= 256 << 10 ? 2 : 1;
  const size_t share = request.bytes() / (size_t(leaders) * rounds);
  const size_t least = size_t(16) << 10, most = streamed_slice(cluster);
  Plan plan = shared_by_leaders(request, leaders, std::clamp(share, least, most));
  plan.between = Plan::streamed;
  plan.ahead = Links::slots - 1;
  return ClusterAllreduce(cluster, request, plan).run();
}

Status allreduce_streamed(Cluster& cluster, const Request& request) {
  const int enough = request.bytes() < 3 << 19 ? 2 : 4;
  return streamed_by(cluster, request, std::min(enough, cluster.place.rails));
}

Status allreduce_domains(Cluster& cluster, const Request& request) {
  constexpr int fewest = 2;  // one alone does not keep its link and its node busy at the same time
  return streamed_by(cluster, request, std::min(std::max(cluster.domains, fewest), cluster.place.rails));
}

Status allreduce_pipelined(Cluster& cluster, const Request& request) {
  if (!mpi_can(request)) return allreduce_streamed(cluster, request);
  Plan plan = shared_by_leaders(request, cluster.place.rails, streamed_slice(cluster));
  plan.between = Plan::by_mpi;
  plan.ahead = 2;
  return ClusterAllreduce(cluster, request, plan).run();
}

}  // namespace stretto::collective
