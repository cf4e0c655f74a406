// Every algorithm, each in the file collective/<kind>/<name>.cpp, and the table that lists them. Those that consist of a pattern
// and its parameter alone (shipments and their routes, prefixes, choices by trial) have no file: the row says it all.
//
// An algorithm runs one Request on one Team. All ranks run the same one. It leaves when nobody can touch this rank's buffers any
// more. Once it has begun, only peer_lost, truncated and disagreed may be returned (and invalid, for a transport that the row
// must not be given).
#pragma once
#include "collective/patterns/by_trial.hpp"
#include "collective/patterns/prefix_reduce.hpp"
#include "collective/patterns/scatter_reduce.hpp"
#include "collective/patterns/shipment.hpp"
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

Status barrier_flat(Team& team, const Request& request);
Status barrier_levels(Team& team, const Request& request);
Status barrier_ticket(Team& team, const Request& request);
Status barrier_tickets(Team& team, const Request& request);

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
Status allreduce_tickets(Team& team, const Request& request);

Status exscan_handover(Team& team, const Request& request);

using Ship = Status(Team&, const Request&, Route);
template <Ship ship, Route route>
Status along(Team& team, const Request& request) {
  return ship(team, request, route);
}
template <Route route, int direct_from = max_team + 1>
constexpr auto adaptive_along = staged_or_direct<along<ship_staged, route>, along<ship_joint, route>, direct_from>;

using PrefixReduction = Status(Team&, const Request&, Prefix);
template <PrefixReduction reduce, Prefix prefix>
Status over(Team& team, const Request& request) {
  return reduce(team, request, prefix);
}

// Whether an algorithm reads peers' memory, where it can; what it cannot it stages.
enum class Direct : uint8_t { never, by_trial, always };

// In which order contributions are combined: that of the tree over all ranks; where another is allowed (Team::any_order), that of
// trees in the domains and over them; or as they come. (Where nothing is combined: whether it goes by domains.)
enum class Order : uint8_t { by_rank, by_domain, by_arrival };

// One row per algorithm. The last row of a kind that stages, can do any size and is never (always) direct carries its large
// messages under STRETTO_TRANSPORT=shm (cma). What it needs, and nothing about when it is best (that is select/rules).
struct Algorithm {
  const char* name;
  Kind kind;
  size_t max_bytes;  // largest vector it can do
  bool needs_stage;  // uses team.staged or team.presence, which may be null otherwise
  Direct direct;     // whether it uses team.direct, which may be null all the same
  Way run;
  Order order = Order::by_rank;
};

inline constexpr size_t any_size = SIZE_MAX;

inline constexpr Algorithm algorithms[] = {
    {"flat", Kind::barrier, any_size, false, Direct::never, barrier_flat},
    {"levels", Kind::barrier, any_size, false, Direct::never, barrier_levels, Order::by_domain},
    {"ticket", Kind::barrier, any_size, true, Direct::never, barrier_ticket},
    {"tickets", Kind::barrier, any_size, true, Direct::never, barrier_tickets, Order::by_domain},
    {"flat", Kind::bcast, slot_payload, false, Direct::never, bcast_flat},
    {"levels", Kind::bcast, slot_payload, false, Direct::never, bcast_levels, Order::by_domain},
    {"domains", Kind::bcast, any_size, true, Direct::never, bcast_domains, Order::by_domain},
    {"tree", Kind::bcast, any_size, true, Direct::always, bcast_tree},
    {"adaptive", Kind::bcast, any_size, true, Direct::by_trial, staged_or_direct<bcast_staged, bcast_direct>},
    {"staged", Kind::bcast, any_size, true, Direct::never, bcast_staged},
    {"handover", Kind::bcast, any_size, true, Direct::by_trial, bcast_handover},
    {"direct", Kind::bcast, any_size, true, Direct::always, bcast_direct},
    {"flat", Kind::reduce, slot_payload, false, Direct::never, reduce_flat},
    {"levels", Kind::reduce, slot_payload, false, Direct::never, reduce_levels, Order::by_domain},
    {"domains", Kind::reduce, any_size, true, Direct::never, reduce_domains, Order::by_domain},
    {"paper_small", Kind::reduce, any_size, true, Direct::never, reduce_paper_small, Order::by_arrival},
    {"paper_large", Kind::reduce, any_size, true, Direct::always, reduce_paper_large, Order::by_arrival},
    {"presence", Kind::reduce, any_size, true, Direct::never, reduce_presence},
    {"presence_direct", Kind::reduce, any_size, true, Direct::always, reduce_presence_direct},
    {"adaptive_direct", Kind::reduce, any_size, true, Direct::always, one_of<reduce_presence_direct, reduce_direct>},
    {"gather", Kind::reduce, any_size, true, Direct::never, reduce_gather},
    {"pair", Kind::reduce, any_size, true, Direct::never, reduce_pair},
    {"adaptive", Kind::reduce, any_size, true, Direct::by_trial, reduce_adaptive},
    {"slices", Kind::reduce, any_size, true, Direct::never, reduce_slices},
    {"direct", Kind::reduce, any_size, true, Direct::always, reduce_direct},
    {"flat", Kind::allreduce, slot_payload, false, Direct::never, allreduce_flat},
    {"levels", Kind::allreduce, slot_payload, false, Direct::never, allreduce_levels, Order::by_domain},
    {"domains", Kind::allreduce, any_size, true, Direct::never, allreduce_domains, Order::by_domain},
    {"paper_small", Kind::allreduce, any_size, true, Direct::never, allreduce_paper_small, Order::by_arrival},
    {"paper_large", Kind::allreduce, any_size, true, Direct::always, allreduce_paper_large, Order::by_arrival},
    {"presence", Kind::allreduce, any_size, true, Direct::never, allreduce_presence},
    {"presence_direct", Kind::allreduce, any_size, true, Direct::always, allreduce_presence_direct},
    {"adaptive_direct", Kind::allreduce, any_size, true, Direct::always, one_of<allreduce_presence_direct, allreduce_direct>},
    {"ticket", Kind::allreduce, slot_payload, true, Direct::never, allreduce_ticket},
    {"tickets", Kind::allreduce, slot_payload, true, Direct::never, allreduce_tickets, Order::by_domain},
    {"gather", Kind::allreduce, any_size, true, Direct::never, allreduce_gather},
    {"pair", Kind::allreduce, any_size, true, Direct::never, allreduce_pair},
    {"adaptive", Kind::allreduce, any_size, true, Direct::by_trial, allreduce_adaptive},
    {"slices", Kind::allreduce, any_size, true, Direct::never, allreduce_slices},
    {"direct", Kind::allreduce, any_size, true, Direct::always, allreduce_direct},
    {"flat", Kind::gather, flat_shipment, false, Direct::never, along<ship_flat, gather_route>},
    {"adaptive", Kind::gather, any_size, true, Direct::by_trial, adaptive_along<gather_route>},
    {"staged", Kind::gather, any_size, true, Direct::never, along<ship_staged, gather_route>},
    {"handover", Kind::gather, any_size, true, Direct::by_trial, along<ship_handover, gather_route>},
    {"joint", Kind::gather, any_size, true, Direct::always, along<ship_joint, gather_route>},
    {"direct", Kind::gather, any_size, true, Direct::always, along<ship_direct, gather_route>},
    {"flat", Kind::scatter, flat_shipment, false, Direct::never, along<ship_flat, scatter_route>},
    {"adaptive", Kind::scatter, any_size, true, Direct::by_trial, adaptive_along<scatter_route, 2>},
    {"staged", Kind::scatter, any_size, true, Direct::never, along<ship_staged, scatter_route>},
    {"handover", Kind::scatter, any_size, true, Direct::by_trial, along<ship_handover, scatter_route>},
    {"joint", Kind::scatter, any_size, true, Direct::always, along<ship_joint, scatter_route>},
    {"direct", Kind::scatter, any_size, true, Direct::always, along<ship_direct, scatter_route>},
    {"flat", Kind::allgather, flat_shipment, false, Direct::never, along<ship_flat, allgather_route>},
    {"pair", Kind::allgather, any_size, true, Direct::by_trial, along<ship_pair, allgather_route>},
    {"adaptive", Kind::allgather, any_size, true, Direct::by_trial, adaptive_along<allgather_route>},
    {"staged", Kind::allgather, any_size, true, Direct::never, along<ship_staged, allgather_route>},
    {"direct", Kind::allgather, any_size, true, Direct::always, along<ship_direct, allgather_route>},
    {"flat", Kind::alltoall, flat_shipment, false, Direct::never, along<ship_flat, alltoall_route>},
    {"pair", Kind::alltoall, any_size, true, Direct::by_trial, along<ship_pair, alltoall_route>},
    {"adaptive", Kind::alltoall, any_size, true, Direct::by_trial, adaptive_along<alltoall_route, 6>},
    {"staged", Kind::alltoall, any_size, true, Direct::never, along<ship_staged, alltoall_route>},
    {"direct", Kind::alltoall, any_size, true, Direct::always, along<ship_direct, alltoall_route>},
    {"staged", Kind::gatherv, any_size, true, Direct::never, along<ship_staged, gatherv_route>},
    {"handover", Kind::gatherv, any_size, true, Direct::by_trial, along<ship_handover, gatherv_route>},
    {"sized", Kind::gatherv, any_size, true, Direct::always, along<ship_sized, gatherv_route>},
    {"joint", Kind::gatherv, any_size, true, Direct::always, along<ship_joint, gatherv_route>},
    {"direct", Kind::gatherv, any_size, true, Direct::always, along<ship_direct, gatherv_route>},
    {"staged", Kind::scatterv, any_size, true, Direct::never, along<ship_staged, scatterv_route>},
    {"handover", Kind::scatterv, any_size, true, Direct::by_trial, along<ship_handover, scatterv_route>},
    {"sized", Kind::scatterv, any_size, true, Direct::always, along<ship_sized, scatterv_route>},
    {"joint", Kind::scatterv, any_size, true, Direct::always, along<ship_joint, scatterv_route>},
    {"direct", Kind::scatterv, any_size, true, Direct::always, along<ship_direct, scatterv_route>},
    {"flat", Kind::allgatherv, flat_shipment, false, Direct::never, along<ship_flat, allgather_route>},
    {"pair", Kind::allgatherv, any_size, true, Direct::by_trial, along<ship_pair, allgather_route>},
    {"adaptive", Kind::allgatherv, any_size, true, Direct::by_trial, adaptive_along<allgather_route>},
    {"staged", Kind::allgatherv, any_size, true, Direct::never, along<ship_staged, allgather_route>},
    {"direct", Kind::allgatherv, any_size, true, Direct::always, along<ship_direct, allgather_route>},
    {"pair", Kind::alltoallv, any_size, true, Direct::by_trial, along<ship_pair, alltoallv_route>},
    {"staged", Kind::alltoallv, any_size, true, Direct::never, along<ship_staged, alltoallv_route>},
    {"sized", Kind::alltoallv, any_size, true, Direct::always, along<ship_sized, alltoallv_route>},
    {"direct", Kind::alltoallv, any_size, true, Direct::always, along<ship_direct, alltoallv_route>},
    {"pair", Kind::alltoallw, any_size, true, Direct::by_trial, along<ship_pair, alltoallv_route>},
    {"staged", Kind::alltoallw, any_size, true, Direct::never, along<ship_staged, alltoallv_route>},
    {"sized", Kind::alltoallw, any_size, true, Direct::always, along<ship_sized, alltoallv_route>},
    {"direct", Kind::alltoallw, any_size, true, Direct::always, along<ship_direct, alltoallv_route>},
    {"flat", Kind::reduce_scatter, slot_payload, false, Direct::never, scatter_reduce_flat},
    {"presence", Kind::reduce_scatter, any_size, true, Direct::never, scatter_reduce_presence},
    {"adaptive", Kind::reduce_scatter, any_size, true, Direct::by_trial,
     staged_or_direct<scatter_reduce_staged, scatter_reduce_direct>},
    {"staged", Kind::reduce_scatter, any_size, true, Direct::never, scatter_reduce_staged},
    {"direct", Kind::reduce_scatter, any_size, true, Direct::always, scatter_reduce_direct},
    {"flat", Kind::reduce_scatter_block, slot_payload, false, Direct::never, scatter_reduce_flat},
    {"presence", Kind::reduce_scatter_block, any_size, true, Direct::never, scatter_reduce_presence},
    {"adaptive", Kind::reduce_scatter_block, any_size, true, Direct::by_trial,
     staged_or_direct<scatter_reduce_staged, scatter_reduce_direct>},
    {"staged", Kind::reduce_scatter_block, any_size, true, Direct::never, scatter_reduce_staged},
    {"direct", Kind::reduce_scatter_block, any_size, true, Direct::always, scatter_reduce_direct},
    {"flat", Kind::scan, slot_payload, false, Direct::never, over<prefix_flat, Prefix::with_own>},
    {"tree", Kind::scan, any_size, true, Direct::never, over<prefix_tree, Prefix::with_own>},
    {"staged", Kind::scan, any_size, true, Direct::never, over<prefix_staged, Prefix::with_own>},
    {"direct", Kind::scan, any_size, true, Direct::always, over<prefix_direct, Prefix::with_own>},
    {"flat", Kind::exscan, slot_payload, false, Direct::never, over<prefix_flat, Prefix::before_own>},
    {"tree", Kind::exscan, any_size, true, Direct::never, over<prefix_tree, Prefix::before_own>},
    {"staged", Kind::exscan, any_size, true, Direct::never, over<prefix_staged, Prefix::before_own>},
    {"handover", Kind::exscan, any_size, true, Direct::by_trial, exscan_handover},
    {"direct", Kind::exscan, any_size, true, Direct::always, over<prefix_direct, Prefix::before_own>},
};
inline constexpr int algorithm_count = int(sizeof algorithms / sizeof algorithms[0]);

inline Way way_of(int row) {  // -1: null
  return row < 0 ? nullptr : algorithms[row].run;
}

}  // namespace stretto::collective
