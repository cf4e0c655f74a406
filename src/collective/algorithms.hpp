// Every algorithm, each in the file collective/<kind>/<name>.cpp, and the table that lists them.
//
// An algorithm runs one Request on one Team. All ranks run the same one. It leaves when nobody can touch this rank's buffers any
// more. Only peer_lost may be returned once it has begun.
#pragma once
#include "collective/request.hpp"
#include "collective/team.hpp"

namespace stretto::collective {

Status barrier_flat(Team& team, const Request& request);

Status bcast_flat(Team& team, const Request& request);
Status bcast_staged(Team& team, const Request& request);
Status bcast_direct(Team& team, const Request& request);

Status reduce_flat(Team& team, const Request& request);
Status reduce_gather(Team& team, const Request& request);
Status reduce_slices(Team& team, const Request& request);
Status reduce_direct(Team& team, const Request& request);

Status allreduce_flat(Team& team, const Request& request);
Status allreduce_gather(Team& team, const Request& request);
Status allreduce_pair(Team& team, const Request& request);
Status allreduce_slices(Team& team, const Request& request);
Status allreduce_direct(Team& team, const Request& request);

// One row per algorithm: what it needs, and nothing about when it is best (that is select/rules).
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
    {"flat", Kind::bcast, slot_payload, false, false, bcast_flat},
    {"staged", Kind::bcast, any_size, true, false, bcast_staged},
    {"direct", Kind::bcast, any_size, true, true, bcast_direct},
    {"flat", Kind::reduce, slot_payload, false, false, reduce_flat},
    {"gather", Kind::reduce, any_size, true, false, reduce_gather},
    {"slices", Kind::reduce, any_size, true, false, reduce_slices},
    {"direct", Kind::reduce, any_size, true, true, reduce_direct},
    {"flat", Kind::allreduce, slot_payload, false, false, allreduce_flat},
    {"gather", Kind::allreduce, any_size, true, false, allreduce_gather},
    {"pair", Kind::allreduce, any_size, true, false, allreduce_pair},
    {"slices", Kind::allreduce, any_size, true, false, allreduce_slices},
    {"direct", Kind::allreduce, any_size, true, true, allreduce_direct},
};
inline constexpr int algorithm_count = int(sizeof algorithms / sizeof algorithms[0]);

}  // namespace stretto::collective
