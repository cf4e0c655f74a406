// The hooks of Reduce, Allreduce, Scan and Exscan: a vector in, a vector out.
#include "collective/board.hpp"
#include "shim/hooks/operand.hpp"
#include "shim/hooks/operation.hpp"
#include "shim/nodes.hpp"
#include "shim/process.hpp"

namespace stretto::shim {
namespace {

struct Reduction {
  const void* send;
  void* receive;
  bool receives;  // this rank gets the result
  MPI_Count count;
  HostOperands host;
  MPI_Comm comm;
};

bool run_predefined(const Entry& entry, const Reduction& r, const Layout& layout, Request& request, Call& call) {
  request.input = r.send;
  request.output = r.receives ? r.receive : nullptr;
  if (__builtin_expect(platform::reachable(request.input, request.output), 1)) return entry.run(request, r.comm, call);
  Layout bytes = with_gaps(layout);
  Job job{{r.send, request.count, &bytes}, {r.receive, request.count, r.receives ? &bytes : nullptr}, nullptr, r.comm};
  return run_staged(entry, job, request, call);
}

// A program's function may count on the vectors that MPI libraries give it: whole ones, but by long Allreduces of Open MPI. One
// that is longer than a cell is too long to be one value.
bool wants_whole_vectors(const Entry& entry, const Request& request) {
  constexpr size_t whole = 256 << 10, whole_for_open_mpi = 8 << 10;
  if (entry.communicator->spans_nodes() || request.bytes() > whole) return false;
  return own_flavor() != Flavor::open_mpi || request.kind != Kind::allreduce || request.bytes() <= whole_for_open_mpi;
}

// One rank combines a whole vector of all ranks; MPI libraries do so in as many steps as the number of ranks has bits.
bool has_too_many_ranks(const Entry& entry, const Request& request) {
  constexpr int most_ranks = 8;
  return entry.size() > most_ranks && request.bytes() > collective::slot_payload;
}

bool run_user(const Entry& entry, const Reduction& r, const Layout& layout, Request request, Call& call) {
  if (engine::Operation::current())
    return decline(call, Reason::unsupported_op);  // a program's function wants a stack of its own
  const bool whole = wants_whole_vectors(entry, request);
  if (whole && has_too_many_ranks(entry, request)) return decline(call, Reason::unsupported_op);
  UserReduction user(layout, r.host.op, whole ? request.count : 1);
  if (whole) {
    request.element = request.bytes();
    request.count = 1;
  }
  request.user = user.callback();
  const auto count = size_t(r.count);
  Job job{{r.send, count, &layout}, {r.receive, count, r.receives ? &layout : nullptr}, &user, r.comm};
  if (!job.in.usable() || !job.out.usable()) return run_staged(entry, job, request, call);
  request.input = r.send;
  request.output = r.receives ? r.receive : nullptr;
  if (!entry.run(request, r.comm, call)) return false;
  if (call.code == MPI_SUCCESS && user.error() != MPI_SUCCESS) call.code = raise(r.comm, user.error());
  return true;
}

bool run_reduction(const Entry& entry, const Reduction& r, Request& request, Call& call) {
  Layout layout;
  Reason reason;
  if (r.count < 0 || !describe_operands(r.host.type, r.host.op, &layout, &request, &reason) ||
      stand_nowhere(r.send, r.count, layout) || (r.receives && stand_nowhere(r.receive, r.count, layout)))
    return decline(call, Reason::invalid_arguments);
  request.host = &r.host;
  request.count = size_t(r.count);
  call.bytes = request.count * layout.size;
  if (reason != Reason::none) return decline(call, reason);
  if (request.bytes() == 0) return done_with_nothing(call);
  if (request.op != kernels::Op::user) return run_predefined(entry, r, layout, request, call);
  return run_user(entry, r, layout, request, call);
}

}  // namespace

bool reduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call, count)) return false;
  if (!entry.has_rank(root)) return decline(call, Reason::invalid_arguments);
  bool is_root = entry.rank() == root;
  if (send == MPI_IN_PLACE && !is_root) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = Kind::reduce;
  request.root = root;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_reduction(entry, {input, receive, is_root, count, {type, op}, comm}, request, call);
}

bool allreduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call, count)) return false;
  Request request;
  request.kind = Kind::allreduce;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_reduction(entry, {input, receive, true, count, {type, op}, comm}, request, call);
}

bool scan(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  Request request;
  request.kind = Kind::scan;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_reduction(entry, {input, receive, true, count, {type, op}, comm}, request, call);
}

bool exscan(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call)) return false;
  Request request;
  request.kind = Kind::exscan;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_reduction(entry, {input, receive, entry.rank() > 0, count, {type, op}, comm}, request, call);
}

}  // namespace stretto::shim
