// The hooks of Gatherv, Scatterv, Allgatherv, Alltoallv and Alltoallw. Of Allgatherv all ranks know the bytes of every block; of
// the others a rank knows only those that it gives or gets. So the choice of an algorithm does not depend on them; between nodes
// it may depend on what the ranks have agreed that they were lately.
#include "shim/hooks/blocks.hpp"
#include "shim/hooks/pieces.hpp"

namespace stretto::shim {

bool gatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, Numbers counts, Numbers displacements,
             MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit_varying(comm, call, Kind::gatherv)) return false;
  const bool is_root = entry.rank() == root, in_place = send == MPI_IN_PLACE;
  Side gives, gets;
  bool sensible = entry.has_rank(root) && (is_root || !in_place) && (in_place || gives.one(send, send_count, send_type)) &&
                  (!is_root || gets.varying(receive, counts, displacements, receive_type, entry.size()));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::gatherv;
  request.root = root;
  return ship(entry, gives, gets, request, comm, call);
}

bool scatterv(const void* send, Numbers counts, Numbers displacements, MPI_Datatype send_type, void* receive,
              MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit_varying(comm, call, Kind::scatterv)) return false;
  const bool is_root = entry.rank() == root, in_place = receive == MPI_IN_PLACE;
  Side gives, gets;
  bool sensible = entry.has_rank(root) && (is_root || !in_place) &&
                  (in_place || gets.one_of(root, receive, receive_count, receive_type)) &&
                  (!is_root || gives.varying(send, counts, displacements, send_type, entry.size()));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::scatterv;
  request.root = root;
  return ship(entry, gives, gets, request, comm, call);
}

bool allgatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, Numbers counts,
                Numbers displacements, MPI_Datatype receive_type, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  const bool in_place = send == MPI_IN_PLACE;
  Side gives, gets;
  bool sensible = gets.varying(receive, counts, displacements, receive_type, entry.size()) &&
                  (in_place || gives.one(send, send_count, send_type));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  if (in_place) gives.block_of(gets, entry.rank());
  Request request;
  request.kind = Kind::allgatherv;
  for (int r = 0; r < entry.size(); ++r) request.count = std::max(request.count, gets.at(r).bytes());
  return ship(entry, gives, gets, request, comm, call);
}

bool alltoallv(const void* send, Numbers send_counts, Numbers send_displacements, MPI_Datatype send_type, void* receive,
               Numbers receive_counts, Numbers receive_displacements, MPI_Datatype receive_type, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit_varying(comm, call, Kind::alltoallv)) return false;
  Side gives, gets;
  bool sensible = gets.varying(receive, receive_counts, receive_displacements, receive_type, entry.size()) &&
                  (send == MPI_IN_PLACE || gives.varying(send, send_counts, send_displacements, send_type, entry.size()));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::alltoallv;
  return ship(entry, send == MPI_IN_PLACE ? gets : gives, gets, request, comm, call);
}

bool alltoallw(const void* send, Numbers send_counts, Numbers send_displacements, Types send_types, void* receive,
               Numbers receive_counts, Numbers receive_displacements, Types receive_types, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit_varying(comm, call, Kind::alltoallw)) return false;
  if (entry.size() > collective::max_team) return decline(call, Reason::many_ranks);
  Side gives, gets;
  CallList<Layout> given_list, got_list;
  Layout *given = given_list.of(entry.size()), *got = got_list.of(entry.size());
  Request request;
  request.kind = Kind::alltoallw;
  if (given == nullptr || got == nullptr) return take_part_without_memory(entry, request, comm, call);
  bool sensible = gets.mixed(receive, receive_counts, receive_displacements, receive_types, entry.size(), got) &&
                  (send == MPI_IN_PLACE || gives.mixed(send, send_counts, send_displacements, send_types, entry.size(), given));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  return ship(entry, send == MPI_IN_PLACE ? gets : gives, gets, request, comm, call);
}

}  // namespace stretto::shim
