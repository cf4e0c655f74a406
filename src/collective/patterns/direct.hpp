// Direct forms: ranks read each other's buffers where they are, by cross-memory attach or a mapping.
//
// Every rank first tells the others where its buffers are and whether it can reach peers. Unless all can, all take the staged
// form. A read that is refused in mid-course is no error: every rank says how far it got, and what is missing is done again, by
// all, through the staging cells. All decisions follow from exchanged facts, so the ranks always agree.
#pragma once
#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

inline constexpr int max_team = 128;  // ranks; bounds the tables below, which stand on the stack

// What a rank publishes at the start of a direct collective.
struct DirectFacts {
  uint64_t input = 0;  // windows, see transport/transport.hpp
  uint64_t result = 0;
  uint32_t able = 0;  // 1: this rank can read its peers
  uint32_t reserved = 0;
};

// Exchanges facts; *all_able tells whether every rank can read its peers.
Status exchange_facts(Team& team, const DirectFacts& own, DirectFacts* all, bool* all_able);

// Owner-slice reduction over the whole vector: each owner reads its slice from all ranks, block by block, and reduces it into its
// own output; consumers then read the finished slices. Per rank 3 - 1/p times the vector's bytes are loaded and stored, 2 reach
// DRAM.
Status direct_reduce(Team& team, const Request& request, Consumers consumers);

}  // namespace stretto::collective
