// A message read along a tree: every rank reads it block by block from its parent's buffer, as far as the parent has it.
//
// The tree keeps two bounds. One rank of each domain reads from outside, the others of it from within. And where reading means
// copying through the kernel, which locks the pages of the source, at most Team::readers ranks read one buffer at a time (twice
// as many where one leads a domain): beyond few, readers of one source wait for each other (Chakraborty et al., "Contention-Aware
// Kernel-Assisted MPI Collectives", Cluster 2017).
#pragma once
#include "collective/patterns/direct.hpp"

namespace stretto::collective {

// Whether so many read the root's buffer by copying that the tree is the better way; equal on all ranks.
bool contended(const Team& team, const Request& request, const DirectFacts* facts, transport::Reach common);

// Bcast. facts, common: as exchanged; all can read the root's input and everybody's result. *served: this rank has the whole
// message; where a read is refused it has not, and its peers below may have garbage.
Status read_along_tree(Team& team, const Request& request, const DirectFacts* facts, transport::Reach common, uint32_t* served);

}  // namespace stretto::collective
