// Shipments: collectives that only move bytes. Each rank gives pieces of its memory and gets others into pieces of its memory;
// who gives what to whom is the route. Gather, scatter, allgather, alltoall and their forms with varying sizes differ in nothing
// else.
//
// Everybody who gives begins with an exchange, or a meeting, whose payload says which call it is and how much is given. So ranks
// that disagree find out: what is too long is truncated, and where no order can be made of it the call ends with `disagreed`.
#pragma once
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

enum class Ends : uint8_t { to_root, from_root, all };

struct Route {
  Ends ends;
  bool each;   // a rank gives each peer a piece of its own; else the same to all
  bool known;  // every rank knows the size of every piece that it gets, and the largest of all
};

inline constexpr Route gather_route{Ends::to_root, false, true}, gatherv_route{Ends::to_root, false, false};
inline constexpr Route scatter_route{Ends::from_root, true, true}, scatterv_route{Ends::from_root, true, false};
inline constexpr Route allgather_route{Ends::all, false, true};  // allgatherv too: its counts are equal on all ranks
inline constexpr Route alltoall_route{Ends::all, true, true}, alltoallv_route{Ends::all, true, false};

// All that a rank gives rides in its slot: one exchange, or where all give one meeting; nobody waits but for what it gets. For
// known routes; bytes() of the request is at most flat_shipment. `each`: pieces are equally long.
inline constexpr size_t flat_shipment = slot_payload - sizeof(uint64_t);
Status ship_flat(Team& team, const Request& request, Route route);

// Through staging cells: each round carries the same slice of every piece, so that all readers are busy in all rounds, and a rank
// that receives where it sends from (in place) has sent a slice before it is overwritten. Everybody pulls what is for him,
// beginning with the rank after himself; a round is read while the next one is staged. Where the route is not known, everybody
// first tells everybody its sizes, beside pieces that are small enough to ride with them. Per byte 2 loads and 2 stores.
Status ship_staged(Team& team, const Request& request, Route route);

// Between two ranks that both give: likewise, but the lines of the cells change hands; or, where trials show that it is faster
// for long pieces, as ship_staged or ship_direct. More ranks: as ship_staged.
Status ship_pair(Team& team, const Request& request, Route route);

// Between two ranks of which one gives: both copy, where they meet (patterns/handover.hpp). Else as ship_staged.
Status ship_handover(Team& team, const Request& request, Route route);

// From and to the buffers where they are: peers are read, or the root of a gather is written to by all at once where its memory
// is mapped. Per byte 1 load and 1 store. What cannot be reached by all is staged; so is what was refused in mid-course.
Status ship_direct(Team& team, const Request& request, Route route);

// Where of more than two ranks one gives, or gets: it and each of the others copy their piece together, from and to the buffers
// where they are (patterns/joint.hpp). A lone core copies to all, or from all, as slowly through cells as through the kernel, and
// all others at once get from one core's caches hardly more; what each side gets done adds up (16 ranks, gather of 1 MiB: 0.3 ms
// instead of 2; scatter of 128 KiB: 123 us instead of 180). Who gives to a root that is late stages its piece and leaves
// (patterns/offer.hpp); all who get leave together. What cannot be reached is staged. Else, and where ranks share CPUs and one
// gets, as ship_direct.
Status ship_joint(Team& team, const Request& request, Route route);
Status ship_offered(Team& team, const Request& request);  // of what all give the root, where pieces are offered

// Where ranks do not know each other's sizes beforehand: they tell them as in ship_staged, and then all decide alike: long pieces
// go as in ship_joint.
Status ship_sized(Team& team, const Request& request, Route route);

}  // namespace stretto::collective
