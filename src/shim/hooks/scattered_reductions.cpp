// The hooks of Reduce_scatter and Reduce_scatter_block: a vector in, one block of the result out.
#include "shim/hooks/arrays.hpp"
#include "shim/hooks/operand.hpp"
#include "shim/hooks/operation.hpp"
#include "shim/hooks/pieces.hpp"

namespace stretto::shim {
namespace {

using collective::Piece;

struct Reduction {
  const void* send;
  void* receive;
  Numbers counts;        // of each rank's block, in elements; or
  MPI_Count each_count;  // of all blocks alike
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;

  int64_t count(int r) const { return counts.present() ? counts[r] : int64_t(each_count); }
};

// The elements of all blocks. False: some count is negative.
bool count_all(const Reduction& r, int ranks, size_t* total) {
  *total = 0;
  for (int i = 0; i < ranks; ++i) {
    if (r.count(i) < 0) return false;
    *total += size_t(r.count(i));
  }
  return true;
}

void list_blocks(const Reduction& r, int ranks, size_t element, Piece* blocks) {
  char* next = static_cast<char*>(const_cast<void*>(r.send));
  for (int i = 0; i < ranks; next += blocks[i++].bytes) blocks[i] = {next, size_t(r.count(i)) * element};
}

bool run(const Entry& entry, const Reduction& r, const Layout& layout, UserReduction* user, Request request, Call& call) {
  PieceList list;
  Piece* blocks = list.of(entry.size());
  if (blocks == nullptr) return take_part_without_memory(entry, request, r.comm, call);
  list_blocks(r, entry.size(), request.element, blocks);
  request.gives = blocks;
  const size_t own = size_t(r.count(entry.rank()));
  Job job{{r.send, request.count, &layout}, {r.receive, own, own > 0 ? &layout : nullptr}, user, r.comm};
  if (!job.in.usable() || !job.out.usable()) return run_staged_blocks(entry, job, request, blocks, call);
  request.input = r.send;
  request.output = r.receive;
  if (!entry.run(request, r.comm, call)) return false;
  if (user && call.code == MPI_SUCCESS && user->error() != MPI_SUCCESS) call.code = raise(r.comm, user->error());
  return true;
}

bool run_scattered(const Entry& entry, const Reduction& r, Request request, Call& call) {
  Layout layout;
  Reason reason;
  if (!count_all(r, entry.size(), &request.count) || !describe_operands(r.type, r.op, &layout, &request, &reason) ||
      stand_nowhere(r.send, MPI_Count(request.count), layout) || stand_nowhere(r.receive, r.count(entry.rank()), layout))
    return decline(call, Reason::invalid_arguments);
  call.bytes = request.count * layout.size;
  if (reason != Reason::none) return decline(call, reason);
  if (request.bytes() == 0) return done_with_nothing(call);
  if (request.op != kernels::Op::user) return run(entry, r, with_gaps(layout), nullptr, request, call);
  if (engine::Operation::current())
    return decline(call, Reason::unsupported_op);  // a program's function wants a stack of its own
  UserReduction user(layout, r.op);
  request.user = user.callback();
  return run(entry, r, layout, &user, request, call);
}

}  // namespace

bool reduce_scatter(const void* send, void* receive, Numbers counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  if (!counts.present()) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::reduce_scatter;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_scattered(entry, {input, receive, counts, 0, type, op, comm}, request, call);
}

bool reduce_scatter_block(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  Request request;
  request.kind = Kind::reduce_scatter_block;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_scattered(entry, {input, receive, {}, count, type, op, comm}, request, call);
}

}  // namespace stretto::shim
