// Every algorithm for communicators that span nodes, and the table that lists them. Their numbers follow those of algorithms.hpp.
//
// All ranks run the same one. Where it stands for an allreduce or a reduce, an element's contributions are combined in the
// node, in rank order, and then node by node; so the order depends on where the ranks are (that of a chain also on the root), and
// on nothing else, but for the rows that leave the arithmetic between nodes to MPI (leader, pipelined).
#pragma once
#include "collective/algorithms.hpp"
#include "collective/hierarchy/cluster.hpp"

namespace stretto::collective {

Status barrier_leader(Cluster& cluster, const Request& request);

Status bcast_leader(Cluster& cluster, const Request& request);
Status bcast_pipelined(Cluster& cluster, const Request& request);
Status bcast_chain(Cluster& cluster, const Request& request);
Status bcast_comers(Cluster& cluster, const Request& request);

Status reduce_leader(Cluster& cluster, const Request& request);
Status reduce_rsa(Cluster& cluster, const Request& request);
Status reduce_pipelined(Cluster& cluster, const Request& request);
Status reduce_chain(Cluster& cluster, const Request& request);

Status allreduce_leader(Cluster& cluster, const Request& request);
Status allreduce_rsa(Cluster& cluster, const Request& request);
Status allreduce_leaders(Cluster& cluster, const Request& request);
Status allreduce_streamed(Cluster& cluster, const Request& request);
Status allreduce_pipelined(Cluster& cluster, const Request& request);
Status allreduce_presence(Cluster& cluster, const Request& request);
Status allreduce_domains(Cluster& cluster, const Request& request);

Status allgather_leader(Cluster& cluster, const Request& request);
Status allgather_leaders(Cluster& cluster, const Request& request);
Status gather_leader(Cluster& cluster, const Request& request);
Status scatter_leader(Cluster& cluster, const Request& request);
Status alltoall_leaders(Cluster& cluster, const Request& request);
Status alltoall_messages(Cluster& cluster, const Request& request);

Status scatter_reduce_leaders(Cluster& cluster, const Request& request);

Status scan_leader(Cluster& cluster, const Request& request);  // exscan too; place.in_order

// Of all reductions, those too whose operation does not commute, wherever ranks are; place.size <= max_team.
Status ordered(Cluster& cluster, const Request& request);

// Blocks that each of the ranks needs room for in scatter_reduce_leaders: an element must fit so often.
inline size_t scattered_blocks(const Placement& place) {
  return size_t(place.size) + size_t(2 * place.nodes + 1) * size_t(place.depth());
}

struct ClusterAlgorithm {
  const char* name;
  Kind kind;
  Status (*run)(Cluster&, const Request&);
};

inline constexpr ClusterAlgorithm cluster_algorithms[] = {
    {"leader", Kind::barrier, barrier_leader},
    {"leader", Kind::bcast, bcast_leader},
    {"pipelined", Kind::bcast, bcast_pipelined},
    {"chain", Kind::bcast, bcast_chain},
    {"comers", Kind::bcast, bcast_comers},
    {"leader", Kind::reduce, reduce_leader},
    {"rsa", Kind::reduce, reduce_rsa},
    {"pipelined", Kind::reduce, reduce_pipelined},
    {"chain", Kind::reduce, reduce_chain},
    {"leader", Kind::allreduce, allreduce_leader},
    {"rsa", Kind::allreduce, allreduce_rsa},
    {"leaders", Kind::allreduce, allreduce_leaders},
    {"streamed", Kind::allreduce, allreduce_streamed},
    {"pipelined", Kind::allreduce, allreduce_pipelined},
    {"presence", Kind::allreduce, allreduce_presence},
    {"domains", Kind::allreduce, allreduce_domains},
    {"leader", Kind::allgather, allgather_leader},
    {"leaders", Kind::allgather, allgather_leaders},
    {"leader", Kind::allgatherv, allgather_leader},
    {"leaders", Kind::allgatherv, allgather_leaders},
    {"leader", Kind::gather, gather_leader},
    {"leader", Kind::gatherv, gather_leader},
    {"leader", Kind::scatter, scatter_leader},
    {"leader", Kind::scatterv, scatter_leader},
    {"leaders", Kind::alltoall, alltoall_leaders},
    {"messages", Kind::alltoall, alltoall_messages},
    {"messages", Kind::alltoallv, alltoall_messages},
    {"messages", Kind::alltoallw, alltoall_messages},
    {"leaders", Kind::reduce_scatter, scatter_reduce_leaders},
    {"leaders", Kind::reduce_scatter_block, scatter_reduce_leaders},
    {"leader", Kind::scan, scan_leader},
    {"leader", Kind::exscan, scan_leader},
    {"ordered", Kind::reduce, ordered},
    {"ordered", Kind::allreduce, ordered},
    {"ordered", Kind::reduce_scatter, ordered},
    {"ordered", Kind::reduce_scatter_block, ordered},
    {"ordered", Kind::scan, ordered},
    {"ordered", Kind::exscan, ordered},
};
inline constexpr int cluster_algorithm_count = int(sizeof cluster_algorithms / sizeof cluster_algorithms[0]);

// Rows of both tables in one numbering.
inline constexpr int row_count = algorithm_count + cluster_algorithm_count;
inline constexpr bool spans_nodes(int row) {
  return row >= algorithm_count;
}
inline constexpr const char* name_of_row(int row) {
  return spans_nodes(row) ? cluster_algorithms[row - algorithm_count].name : algorithms[row].name;
}
inline constexpr Kind kind_of_row(int row) {
  return spans_nodes(row) ? cluster_algorithms[row - algorithm_count].kind : algorithms[row].kind;
}

}  // namespace stretto::collective
