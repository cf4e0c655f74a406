// Direct forms: ranks read each other's buffers where they are, by a mapping or by cross-memory attach.
//
// Every rank first tells the others where its buffers are and by what it can reach peers. What all can reach all use; else all
// take the staged form. A read that is refused in mid-course is no error: every rank says how far it got, and what is missing is
// done again, by all, through the staging cells. All decisions follow from exchanged facts, so the ranks always agree.
#pragma once
#include <utility>

#include "collective/patterns/combine.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

// What a rank publishes at the start of a direct collective.
struct DirectFacts {
  transport::Window input, result;  // 0: no such buffer, or none that can be reached
  transport::Reach reach;
  uint64_t label = 0;  // which call this is, of how many bytes: set by exchange_facts()
};

// Exchanges facts; *common: what every rank can do. Ranks that make different calls find it out, and those that give different
// sizes, which is allowed in none of these but a Bcast.
Status exchange_facts(Team& team, const Request& request, DirectFacts own, DirectFacts* all, transport::Reach* common);

// Of a Bcast, once facts are exchanged: whether somebody's room is longer or shorter than the message. Then it is staged, for
// those who have room for all of it.
bool is_uneven(const Team& team, const Request& request, const DirectFacts* facts);
Status broadcast_uneven(Team& team, const Request& request, const DirectFacts* facts);

// Where direct access reaches not all, or gains nothing: what is chosen without it, else staged().
template <typename Staged>
Status without_direct(Team& team, const Request& request, Staged staged) {
  const Way other = std::exchange(team.unmapped, nullptr);
  return other != nullptr ? other(team, request) : staged();
}

// Owner-slice reduction over the whole vector: each owner reads its slice from all ranks, block by block, and reduces it into its
// own output; consumers then read the finished slices. Per rank 3 - 1/p times the vector's bytes are loaded and stored, 2 reach
// DRAM. Where everybody can write to the consumers' buffers, the owner stores its finished blocks there while they are in its
// cache, and nobody needs to read them again: 2 times the vector's bytes, and one synchronisation less.
Status direct_reduce(Team& team, const Request& request, Consumers consumers);

}  // namespace stretto::collective
