// Reduce over nodes: each node reduces to one rank, and these to the root. leader: by MPI's reduce; rsa: by Stretto's arithmetic
// (across.hpp). The root itself stands for its node, unless not every node has a rank of its local number: then the first rank
// of its node hands it the result.
#include <string.h>

#include "collective/hierarchy/across.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

class ClusterReduce {
 public:
  ClusterReduce(Cluster& cluster, const Request& request, bool by_mpi)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        by_mpi_(by_mpi && request.op != kernels::Op::user),
        rail_(place_.rail_of(request.root)),
        root_node_(place_.node_of[request.root]),
        root_local_(place_.local_of[request.root]) {}

  Status run() {
    size_t slice = std::max<size_t>(std::min(slice_most(cluster_), Cluster::slice_bytes) / request_.element, 1);
    for (size_t done = 0; done < request_.count; done += slice)
      STRETTO_TRY(reduce_slice(done * request_.element, std::min(slice, request_.count - done)));
    return Status::good();
  }

 private:
  bool here() const { return place_.node == root_node_; }
  bool is_root() const { return place_.rank == request_.root; }

  Status reduce_slice(size_t at, size_t n) {
    char* result = is_root() ? static_cast<char*>(request_.output) + at : cluster_.vector();
    Request phase = request_;
    phase.root = rail_;
    phase.count = n;
    phase.input = static_cast<const char*>(request_.input) + at;
    phase.output = place_.leads(rail_) ? result : nullptr;
    STRETTO_TRY(cluster_.run_in_node(phase));
    if (place_.leads(rail_)) STRETTO_TRY(between(result, n));
    return here() && root_local_ != rail_ ? hand_over(result, n) : Status::good();
  }

  Status between(char* vector, size_t n) {
    if (!by_mpi_) return reduce_across(cluster_, request_, vector, vector, n, root_node_);
    return cluster_.links->reduce(request_, vector, vector, n, root_node_);
  }

  // All of the root's node receive it, in the vector where nobody asked for it.
  Status hand_over(char* result, size_t n) {
    Request phase;
    phase.kind = Kind::bcast;
    phase.root = rail_;
    phase.count = n * request_.element;
    phase.input = phase.output = result;
    return cluster_.run_in_node(phase);
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const bool by_mpi_;
  const int rail_, root_node_, root_local_;
};

}  // namespace

Status reduce_leader(Cluster& cluster, const Request& request) {
  return ClusterReduce(cluster, request, true).run();
}

Status reduce_rsa(Cluster& cluster, const Request& request) {
  return ClusterReduce(cluster, request, false).run();
}

}  // namespace stretto::collective
