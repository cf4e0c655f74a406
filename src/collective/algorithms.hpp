// Every algorithm, each in the file collective/<kind>/<name>.cpp, and the table that lists them. Those that consist of a pattern
// and its parameter alone (shipments and their routes, prefixes) have no file: the row says it all.
//
// An algorithm runs one Request on one Team. All ranks run the same one. It leaves when nobody can touch this rank's buffers any
// more. Once it has begun, only peer_lost, truncated and disagreed may be returned.
#pragma once
#include "collective/patterns/prefix_reduce.hpp"
#include "collective/patterns/scatter_reduce.hpp"
#include "collective/patterns/shipment.hpp"
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

Status barrier_flat(Team& team, const Request& request);
Status barrier_levels(Team& team, const Request& request);
Status barrier_ticket(Team& team, const Request& request);

Status bcast_flat(Team& team, const Request& request);
Status bcast_levels(Team& team, const Request& request);
Status bcast_domains(Team& team, const Request& request);
Status bcast_tree(Team& team, const Request& request);
Status bcast_staged(Team& team, const Request& request);
Status bcast_handover(Team& team, const Request& request);
Status bcast_direct(Team& team, const Request& request);

Status reduce_flat(Team& team, const Request& request);
Status reduce_levels(Team& team, const Request& request);
Status reduce_domains(Team& team, const Request& request);
Status reduce_gather(Team& team, const Request& request);
Status reduce_adaptive(Team& team, const Request& request);
Status reduce_pair(Team& team, const Request& request);
Status reduce_slices(Team& team, const Request& request);
Status reduce_direct(Team& team, const Request& request);
Status reduce_paper_small(Team& team, const Request& request);
Status reduce_paper_large(Team& team, const Request& request);
Status reduce_presence(Team& team, const Request& request);
Status reduce_presence_direct(Team& team, const Request& request);

Status allreduce_flat(Team& team, const Request& request);
Status allreduce_levels(Team& team, const Request& request);
Status allreduce_domains(Team& team, const Request& request);
Status allreduce_gather(Team& team, const Request& request);
Status allreduce_pair(Team& team, const Request& request);
Status allreduce_adaptive(Team& team, const Request& request);
Status allreduce_slices(Team& team, const Request& request);
Status allreduce_direct(Team& team, const Request& request);
Status allreduce_paper_small(Team& team, const Request& request);
Status allreduce_paper_large(Team& team, const Request& request);
Status allreduce_presence(Team& team, const Request& request);
Status allreduce_presence_direct(Team& team, const Request& request);
Status allreduce_ticket(Team& team, const Request& request);

Status exscan_handover(Team& team, const Request& request);

using Ship = Status(Team&, const Request&, Route);
template <Ship ship, Route route>
Status along(Team& team, const Request& request) {
  return ship(team, request, route);
}

using PrefixReduction = Status(Team&, const Request&, Prefix);
template <PrefixReduction reduce, Prefix prefix>
Status over(Team& team, const Request& request) {
  return reduce(team, request, prefix);
}

// One row per algorithm. The last row of a kind that stages (is direct) carries its large messages under STRETTO_TRANSPORT=shm
// (cma). What it needs, and nothing about when it is best (that is select/rules).
struct Algorithm {
  const char* name;
  Kind kind;
  size_t max_bytes;  // largest vector it can do
  bool needs_stage;  // works through staging cells
  bool uses_direct;  // reads peers' memory where it can; stages what it cannot
  Status (*run)(Team&, const Request&);
};

inline constexpr size_t any_size = SIZE_MAX;

inline constexpr Algorithm algorithms[] = {
    {"flat", Kind::barrier, any_size, false, false, barrier_flat},
    {"levels", Kind::barrier, any_size, false, false, barrier_levels},
    {"ticket", Kind::barrier, any_size, true, false, barrier_ticket},
    {"flat", Kind::bcast, slot_payload, false, false, bcast_flat},
    {"levels", Kind::bcast, slot_payload, false, false, bcast_levels},
    {"domains", Kind::bcast, any_size, true, false, bcast_domains},
    {"tree", Kind::bcast, any_size, true, true, bcast_tree},
    {"staged", Kind::bcast, any_size, true, false, bcast_staged},
    {"handover", Kind::bcast, any_size, true, true, bcast_handover},
    {"direct", Kind::bcast, any_size, true, true, bcast_direct},
    {"flat", Kind::reduce, slot_payload, false, false, reduce_flat},
    {"levels", Kind::reduce, slot_payload, false, false, reduce_levels},
    {"domains", Kind::reduce, any_size, true, false, reduce_domains},
    {"paper_small", Kind::reduce, any_size, true, false, reduce_paper_small},
    {"paper_large", Kind::reduce, any_size, true, true, reduce_paper_large},
    {"presence", Kind::reduce, any_size, true, false, reduce_presence},
    {"presence_direct", Kind::reduce, any_size, true, true, reduce_presence_direct},
    {"gather", Kind::reduce, any_size, true, false, reduce_gather},
    {"pair", Kind::reduce, any_size, true, false, reduce_pair},
    {"adaptive", Kind::reduce, any_size, true, false, reduce_adaptive},
    {"slices", Kind::reduce, any_size, true, false, reduce_slices},
    {"direct", Kind::reduce, any_size, true, true, reduce_direct},
    {"flat", Kind::allreduce, slot_payload, false, false, allreduce_flat},
    {"levels", Kind::allreduce, slot_payload, false, false, allreduce_levels},
    {"domains", Kind::allreduce, any_size, true, false, allreduce_domains},
    {"paper_small", Kind::allreduce, any_size, true, false, allreduce_paper_small},
    {"paper_large", Kind::allreduce, any_size, true, true, allreduce_paper_large},
    {"presence", Kind::allreduce, any_size, true, false, allreduce_presence},
    {"presence_direct", Kind::allreduce, any_size, true, true, allreduce_presence_direct},
    {"ticket", Kind::allreduce, slot_payload, true, false, allreduce_ticket},
    {"gather", Kind::allreduce, any_size, true, false, allreduce_gather},
    {"pair", Kind::allreduce, any_size, true, false, allreduce_pair},
    {"adaptive", Kind::allreduce, any_size, true, true, allreduce_adaptive},
    {"slices", Kind::allreduce, any_size, true, false, allreduce_slices},
    {"direct", Kind::allreduce, any_size, true, true, allreduce_direct},
    {"flat", Kind::gather, flat_shipment, false, false, along<ship_flat, gather_route>},
    {"staged", Kind::gather, any_size, true, false, along<ship_staged, gather_route>},
    {"handover", Kind::gather, any_size, true, true, along<ship_handover, gather_route>},
    {"direct", Kind::gather, any_size, true, true, along<ship_direct, gather_route>},
    {"flat", Kind::scatter, flat_shipment, false, false, along<ship_flat, scatter_route>},
    {"staged", Kind::scatter, any_size, true, false, along<ship_staged, scatter_route>},
    {"handover", Kind::scatter, any_size, true, true, along<ship_handover, scatter_route>},
    {"direct", Kind::scatter, any_size, true, true, along<ship_direct, scatter_route>},
    {"flat", Kind::allgather, flat_shipment, false, false, along<ship_flat, allgather_route>},
    {"pair", Kind::allgather, any_size, true, true, along<ship_pair, allgather_route>},
    {"staged", Kind::allgather, any_size, true, false, along<ship_staged, allgather_route>},
    {"direct", Kind::allgather, any_size, true, true, along<ship_direct, allgather_route>},
    {"flat", Kind::alltoall, flat_shipment, false, false, along<ship_flat, alltoall_route>},
    {"pair", Kind::alltoall, any_size, true, true, along<ship_pair, alltoall_route>},
    {"staged", Kind::alltoall, any_size, true, false, along<ship_staged, alltoall_route>},
    {"direct", Kind::alltoall, any_size, true, true, along<ship_direct, alltoall_route>},
    {"staged", Kind::gatherv, any_size, true, false, along<ship_staged, gatherv_route>},
    {"handover", Kind::gatherv, any_size, true, true, along<ship_handover, gatherv_route>},
    {"sized", Kind::gatherv, any_size, true, true, along<ship_sized, gatherv_route>},
    {"direct", Kind::gatherv, any_size, true, true, along<ship_direct, gatherv_route>},
    {"staged", Kind::scatterv, any_size, true, false, along<ship_staged, scatterv_route>},
    {"handover", Kind::scatterv, any_size, true, true, along<ship_handover, scatterv_route>},
    {"sized", Kind::scatterv, any_size, true, true, along<ship_sized, scatterv_route>},
    {"direct", Kind::scatterv, any_size, true, true, along<ship_direct, scatterv_route>},
    {"flat", Kind::allgatherv, flat_shipment, false, false, along<ship_flat, allgather_route>},
    {"pair", Kind::allgatherv, any_size, true, true, along<ship_pair, allgather_route>},
    {"staged", Kind::allgatherv, any_size, true, false, along<ship_staged, allgather_route>},
    {"direct", Kind::allgatherv, any_size, true, true, along<ship_direct, allgather_route>},
    {"pair", Kind::alltoallv, any_size, true, true, along<ship_pair, alltoallv_route>},
    {"staged", Kind::alltoallv, any_size, true, false, along<ship_staged, alltoallv_route>},
    {"sized", Kind::alltoallv, any_size, true, true, along<ship_sized, alltoallv_route>},
    {"direct", Kind::alltoallv, any_size, true, true, along<ship_direct, alltoallv_route>},
    {"pair", Kind::alltoallw, any_size, true, true, along<ship_pair, alltoallv_route>},
    {"staged", Kind::alltoallw, any_size, true, false, along<ship_staged, alltoallv_route>},
    {"sized", Kind::alltoallw, any_size, true, true, along<ship_sized, alltoallv_route>},
    {"direct", Kind::alltoallw, any_size, true, true, along<ship_direct, alltoallv_route>},
    {"flat", Kind::reduce_scatter, slot_payload, false, false, scatter_reduce_flat},
    {"presence", Kind::reduce_scatter, any_size, true, false, scatter_reduce_presence},
    {"staged", Kind::reduce_scatter, any_size, true, false, scatter_reduce_staged},
    {"direct", Kind::reduce_scatter, any_size, true, true, scatter_reduce_direct},
    {"flat", Kind::reduce_scatter_block, slot_payload, false, false, scatter_reduce_flat},
    {"presence", Kind::reduce_scatter_block, any_size, true, false, scatter_reduce_presence},
    {"staged", Kind::reduce_scatter_block, any_size, true, false, scatter_reduce_staged},
    {"direct", Kind::reduce_scatter_block, any_size, true, true, scatter_reduce_direct},
    {"flat", Kind::scan, slot_payload, false, false, over<prefix_flat, Prefix::with_own>},
    {"staged", Kind::scan, any_size, true, false, over<prefix_staged, Prefix::with_own>},
    {"direct", Kind::scan, any_size, true, true, over<prefix_direct, Prefix::with_own>},
    {"flat", Kind::exscan, slot_payload, false, false, over<prefix_flat, Prefix::before_own>},
    {"staged", Kind::exscan, any_size, true, false, over<prefix_staged, Prefix::before_own>},
    {"handover", Kind::exscan, any_size, true, true, exscan_handover},
    {"direct", Kind::exscan, any_size, true, true, over<prefix_direct, Prefix::before_own>},
};
inline constexpr int algorithm_count = int(sizeof algorithms / sizeof algorithms[0]);

}  // namespace stretto::collective
