// The hooks of Gather, Scatter, Allgather and Alltoall. Signatures are equal at both ends of each message, so all ranks know the
// bytes of a block; where a program gets that wrong the longer one counts, so that no algorithm has too little room for it.
#include <algorithm>

#include "shim/hooks/blocks.hpp"

namespace stretto::shim {

bool gather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  const bool is_root = entry.rank() == root, in_place = send == MPI_IN_PLACE;
  Side gives, gets;
  bool sensible = entry.has_rank(root) && (is_root || !in_place) && (in_place || gives.one(send, send_count, send_type)) &&
                  (!is_root || gets.equal(receive, receive_count, receive_type));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::gather;
  request.root = root;
  request.count = is_root ? gets.block() : gives.block();
  return ship(entry, gives, gets, request, comm, call);
}

bool scatter(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
             MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  const bool is_root = entry.rank() == root, in_place = receive == MPI_IN_PLACE;
  Side gives, gets;
  bool sensible = entry.has_rank(root) && (is_root || !in_place) &&
                  (in_place || gets.one_of(root, receive, receive_count, receive_type)) &&
                  (!is_root || gives.equal(send, send_count, send_type));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::scatter;
  request.root = root;
  request.count = size_t(entry.size()) * (is_root ? gives.block() : gets.block());
  return ship(entry, gives, gets, request, comm, call);
}

bool allgather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
               MPI_Datatype receive_type, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  const bool in_place = send == MPI_IN_PLACE;
  Side gives, gets;
  bool sensible = gets.equal(receive, receive_count, receive_type) && (in_place || gives.one(send, send_count, send_type));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  if (in_place) gives.block_of(gets, entry.rank());
  Request request;
  request.kind = Kind::allgather;
  request.count = std::max(gives.block(), gets.block());
  return ship(entry, gives, gets, request, comm, call);
}

bool alltoall(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
              MPI_Datatype receive_type, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  Side gives, gets;
  bool sensible =
      gets.equal(receive, receive_count, receive_type) && (send == MPI_IN_PLACE || gives.equal(send, send_count, send_type));
  if (!sensible) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::alltoall;
  request.count = size_t(entry.size()) * std::max(gives.block(), gets.block());
  return ship(entry, send == MPI_IN_PLACE ? gets : gives, gets, request, comm, call);
}

}  // namespace stretto::shim
