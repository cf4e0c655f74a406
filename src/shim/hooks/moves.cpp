// The hooks of Barrier and Bcast.
#include "shim/hooks/operand.hpp"

namespace stretto::shim {

bool barrier(MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  Request request;
  request.kind = collective::Kind::barrier;
  return entry.run(request, comm, call);
}

bool bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call, count)) return false;
  Layout layout;
  if (count < 0 || !describe(type, &layout) || !layout.committed || !entry.has_rank(root) || stand_nowhere(buffer, count, layout))
    return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = collective::Kind::bcast;
  request.count = call.bytes = size_t(count) * layout.size;  // in bytes: the root's elements may be cut otherwise
  request.root = root;
  if (request.bytes() == 0) return done_with_nothing(call);
  bool is_root = entry.rank() == root;
  Buffer whole{buffer, size_t(count), &layout};
  if (!whole.usable())
    return run_staged(entry, is_root ? Job{whole, {}, nullptr, comm} : Job{{}, whole, nullptr, comm}, request, call);
  request.input = request.output = buffer;
  return entry.run(request, comm, call);
}

}  // namespace stretto::shim
