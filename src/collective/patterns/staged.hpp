// Staged reductions: contributions travel through cells that all ranks map.
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// Each rank stages its whole range; each consumer reads the ranges of all ranks and reduces them itself. One synchronisation a
// round. Bytes a consumer loads and stores per byte of the vector: p loads, 1 store, besides 1 + 1 to stage: for small vectors,
// and for the root of a reduction among few.
Status gather_reduce(Team& team, const Request& request, Consumers consumers);

// Movement-avoiding reduction: the vector of each round is cut into p slices, one owner each (the root of a Reduce, which
// collects them all, owns none). A rank stages the slices it does not own; the owner reduces its slice from all ranks in one
// pass, straight into its own cell; consumers copy the others' slices out. Per byte of the vector and rank 5 - 1/p loads and
// stores, of which 2 reach DRAM while the cells stay in cache. Three stages overlap: round t is staged while t-1 is reduced and
// t-2 collected.
Status slice_reduce(Team& team, const Request& request, Consumers consumers);

// The same between two ranks, but lines of cells change hands. More ranks, and users' functions, which must not work in the place
// of an input: slice_reduce.
Status pair_reduce(Team& team, const Request& request, Consumers consumers);

// Bcast, staged (bcast/staged.cpp): how those who get it store it.
Status broadcast_staged(Team& team, const Request& request, kernels::Store store);

}  // namespace stretto::collective
