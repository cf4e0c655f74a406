// Reduce over nodes: each node reduces to one rank, and these to the root.
//   leader     between nodes MPI's reduce
//   rsa        between nodes Stretto's arithmetic (across.hpp)
//   pipelined  slice by slice: while slices are between nodes (MPI's nonblocking reduce) the next are reduced in the nodes
// The root itself stands for its node, unless not every node has a rank of its local number: then the first rank of its node
// hands it the result.
#include "collective/hierarchy/across.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

struct Plan {
  size_t slice;    // bytes
  bool by_mpi;     // who does the arithmetic between nodes
  uint32_t ahead;  // slices between nodes while later ones are reduced
};

class ClusterReduce {
 public:
  ClusterReduce(Cluster& cluster, const Request& request, const Plan& plan)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        plan_(plan),
        rail_(place_.rail_of(request.root)),
        root_node_(place_.node_of[request.root]),
        root_local_(place_.local_of[request.root]),
        slice_(std::max<size_t>(plan.slice / request.element, 1)),
        count_(uint32_t((request.count + slice_ - 1) / slice_)) {}

  Status run() {
    for (uint32_t i = 0; i < count_ + plan_.ahead; ++i) {
      if (i < count_) STRETTO_TRY(in_node(i));
      if (i < count_ && place_.leads(rail_)) STRETTO_TRY(start(i));
      if (i >= plan_.ahead) STRETTO_TRY(finish(i - plan_.ahead));
    }
    return Status::good();
  }

 private:
  bool here() const { return place_.node == root_node_; }
  size_t elements(uint32_t i) const { return std::min(slice_, request_.count - i * slice_); }

  // Where this rank has slice i of its node's, and then of all nodes: in the result, or where nobody asked for it.
  char* vector(uint32_t i) const {
    if (place_.rank == request_.root) return static_cast<char*>(request_.output) + i * slice_ * request_.element;
    return cluster_.vector() + i % (plan_.ahead + 1) * slice_ * request_.element;
  }

  Status in_node(uint32_t i) {
    Request phase = request_;
    phase.root = rail_;
    phase.count = elements(i);
    phase.input = static_cast<const char*>(request_.input) + i * slice_ * request_.element;
    phase.output = place_.leads(rail_) ? vector(i) : nullptr;
    return cluster_.run_in_node(phase);
  }

  Status start(uint32_t i) {
    if (!plan_.by_mpi) return reduce_across(cluster_, request_, vector(i), elements(i), root_node_);
    return cluster_.links->start_reduce(request_, vector(i), elements(i), root_node_, int(i % Links::slots));
  }

  Status finish(uint32_t i) {
    if (plan_.by_mpi && place_.leads(rail_)) STRETTO_TRY(cluster_.links->finish(int(i % Links::slots)));
    return here() && root_local_ != rail_ ? hand_over(i) : Status::good();
  }

  Status hand_over(uint32_t i) {
    Request phase;
    phase.kind = Kind::bcast;
    phase.root = rail_;
    phase.count = elements(i) * request_.element;
    phase.input = phase.output = vector(i);
    return cluster_.run_in_node(phase);
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const Plan plan_;
  const int rail_, root_node_, root_local_;
  const size_t slice_;  // elements
  const uint32_t count_;
};

}  // namespace

Status reduce_rsa(Cluster& cluster, const Request& request) {
  return ClusterReduce(cluster, request, {std::min(slice_most(cluster), Cluster::slice_bytes), false, 0}).run();
}

Status reduce_leader(Cluster& cluster, const Request& request) {
  if (!mpi_can(request)) return reduce_rsa(cluster, request);
  return ClusterReduce(cluster, request, {Cluster::slice_bytes, true, 0}).run();
}

Status reduce_pipelined(Cluster& cluster, const Request& request) {
  if (!mpi_can(request)) return reduce_rsa(cluster, request);
  return ClusterReduce(cluster, request, {Cluster::slice_bytes / Links::slots, true, Links::slots - 1}).run();
}

}  // namespace stretto::collective
