// Reductions in two levels: over the ranks of each domain first, then over the domains.
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Whether the ranks stand in several domains and combining domain by domain gives the bits of the fixed tree by rank
// (kernels.hpp): where domains hold aligned blocks of ranks, and always where operands may be regrouped and exchanged without a
// trace (integers, logicals, bits). Where the order may be another (Team::any_order), also for other blocks of consecutive
// ranks: then by the fixed tree over each block, and by the fixed tree over the blocks. A user's operation is never regrouped.
bool combines_by_domain(const Team& team, const Request& request);

// Small vectors: the leader of each domain reads the slots of its ranks, the leaders read each other's, so that one line per
// vector and domain crosses to each other domain, and not one per rank. Three transfers one after the other (two for a lone
// consumer) instead of one.
Status levels_reduce(Team& team, const Request& request, Consumers consumers);

// Large vectors, by several leaders: slice_reduce (patterns/staged.hpp) in two levels. The vector of a round is cut into one part
// per domain, where that part is finished, and every part into one piece for each rank of a domain. A rank reduces its pieces of
// all parts over its domain; it then finishes its piece of the own part, from the other domains' partial results; it brings the
// others' results into its domain, one reader per byte; and all copy from their neighbours. Each byte crosses to another domain
// once as a partial result and once as a result. Needs combines_by_domain().
Status domain_reduce(Team& team, const Request& request, Consumers consumers);

}  // namespace stretto::collective
