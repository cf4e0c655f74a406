#include "shim/nodes.hpp"

#include <new>

#include "collective/patterns/direct.hpp"
#include "shim/context.hpp"
#include "shim/mpi.hpp"
#include "shim/rails.hpp"
#include "shim/world_ranks.hpp"

namespace stretto::shim {
namespace {

using engine::Communicator;
using select::Reason;

// What the engine's questions to MPI are about, while the state of a communicator is made.
struct Making {
  MPI_Comm comm;
  const collective::Placement* place;
  uint64_t* offsets;  // one per rank
};

bool least(void* making, int64_t* values, int count) {
  return least_of(static_cast<Making*>(making)->comm, values, count);
}

bool all(void* making, bool own) {
  int64_t value = own;
  return least(making, &value, 1) && value != 0;
}

// Each node's first rank says where its board is. All ranks see whether every node has one.
bool broadcast_in_nodes(void* context, void* data, int) {
  Making& making = *static_cast<Making*>(context);
  MPI_Datatype type = named<MPI_Datatype>("MPI_UINT64_T");
  if (mpi().Allgather(data, 1, type, making.offsets, 1, type, making.comm) != MPI_SUCCESS) return false;
  bool everywhere = true;
  for (int r = 0; r < making.place->size; ++r) {
    if (making.place->local_of[r] != 0) continue;
    everywhere = everywhere && making.offsets[r] != 0;
    if (making.place->node_of[r] == making.place->node) *static_cast<uint64_t*>(data) = making.offsets[r];
  }
  return everywhere;
}

// The rules may change while candidates are measured (shim/tuning.cpp).
const engine::Policy& policy_across() {
  static engine::Policy policy = [] {
    engine::Policy made = context().policy;
    made.host.broadcast = broadcast_in_nodes;
    made.host.all = all;
    made.host.least = least;
    return made;
  }();
  if (policy.rules != context().policy.rules) policy.rules = context().policy.rules;
  return policy;
}

// Spawned processes and those of other worlds do not take part, and all members of this world see that alike.
bool of_this_world(MPI_Comm comm, int size) {
  return for_world_ranks(comm, size, [](int, int world_rank) { return world_rank >= 0; });
}

// Members of this node's ranks, in the order of the communicator.
bool find_members(MPI_Comm comm, const collective::Placement& place, int* members) {
  int here = 0;
  return for_world_ranks(comm, place.size, [&](int r, int world_rank) {
    if (place.node_of[r] != place.node) return true;
    return (members[here++] = context().job.member_of(world_rank)) >= 0;
  });
}

// One split makes all rails, of which this rank has one or none; another, a duplicate without the program's attributes.
bool make_rail(MPI_Comm comm, const collective::Placement& place, std::unique_ptr<collective::Links>* links) {
  bool has = place.local < place.rails;
  MPI_Comm rail = comm_null(), all = comm_null();
  if (mpi().Comm_split(comm, has ? place.local : MPI_UNDEFINED, place.node, &rail) != MPI_SUCCESS ||
      mpi().Comm_split(comm, 0, place.rank, &all) != MPI_SUCCESS)
    return false;
  for (MPI_Comm made : {rail, all})
    if (made != comm_null()) mpi().Comm_set_errhandler(made, named<MPI_Errhandler>("MPI_ERRORS_RETURN"));
  *links = make_links(rail, all);
  if (*links != nullptr) return true;
  if (has) mpi().Comm_free(&rail);
  mpi().Comm_free(&all);
  return_rail();
  return false;
}

// Whether all ranks answer yes; where they do not, the place for links that this one has taken is free again.
bool all_have_room(MPI_Comm comm, bool memory, const collective::Placement& place) {
  bool reserved = reserve_rail();
  int64_t yes = memory && reserved && place.local_size <= collective::max_team;
  bool agreed = least_of(comm, &yes, 1) && yes != 0;
  if (reserved && !agreed) return_rail();
  return agreed;
}

Communicator* declining(Reason reason) {
  return new (std::nothrow) Communicator(reason);
}

}  // namespace

bool least_of(MPI_Comm comm, int64_t* values, int count) {
  return mpi().Allreduce(MPI_IN_PLACE, values, count, named<MPI_Datatype>("MPI_INT64_T"), named<MPI_Op>("MPI_MIN"), comm) ==
         MPI_SUCCESS;
}

bool all_nodes_agree(bool joined, uint64_t fingerprint) {
  int64_t half = int64_t(fingerprint >> 1);
  int64_t values[3] = {joined, half, -half};
  return least_of(comm_world(), values, 3) && values[0] != 0 && values[1] == -values[2];
}

void end_job(MPI_Comm comm, int code) {
  mpi().Abort(comm, code);
}

Communicator* make_across_nodes(MPI_Comm comm, int size, int rank) {
  Context& c = context();
  if (!of_this_world(comm, size)) return declining(Reason::many_nodes);
  const size_t n = unsigned(size);
  std::unique_ptr<int[]> numbers(new (std::nothrow) int[2 * n]);
  std::unique_ptr<uint64_t[]> offsets(new (std::nothrow) uint64_t[n]);
  engine::Span span;
  int64_t memory = numbers && offsets;
  if (!least_of(comm, &memory, 1) || memory == 0) return declining(Reason::no_shared_memory);
  const int own = c.job.node_name();
  MPI_Datatype type = named<MPI_Datatype>("MPI_INT");
  if (mpi().Allgather(&own, 1, type, numbers.get(), 1, type, comm) != MPI_SUCCESS) return declining(Reason::invalid_arguments);
  bool found = span.place.find(numbers.get(), size, rank) && find_members(comm, span.place, &numbers[n]);
  if (!all_have_room(comm, found, span.place)) return declining(Reason::no_shared_memory);
  span.members = &numbers[n];
  Making making{comm, &span.place, offsets.get()};
  if (!all(&making, make_rail(comm, span.place, &span.links))) return declining(Reason::no_shared_memory);
  return Communicator::create_across(c.job, policy_across(), span, &making);
}

}  // namespace stretto::shim
