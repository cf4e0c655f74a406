// The hooks of the taken collectives: MPI's terms in, neutral requests to the engine, MPI's answers out.
#include <string.h>

#include <new>

#include "base/log.hpp"
#include "collective/patterns/direct.hpp"
#include "shim/context.hpp"
#include "shim/handles.hpp"
#include "shim/hooks.hpp"
#include "shim/mpi.hpp"
#include "shim/operands.hpp"
#include "shim/staging.hpp"
#include "trace/stopwatch.hpp"

namespace stretto::shim {
namespace {

using collective::Request;
using engine::Communicator;
using select::Reason;

template <class Handle>
uintptr_t key_of(Handle comm) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<uintptr_t>(comm);
  else
    return uintptr_t(comm);
}

// What this thread remembers of handles. Valid while no communicator has been freed since.
struct Remembered {
  uintptr_t key = 0;
  uint64_t generation = 0;
  Communicator* communicator = nullptr;
};
constexpr size_t remembered_slots = 16;
thread_local Remembered remembered[remembered_slots];

Reason members_of(MPI_Comm comm, int size, int* members) {
  Context& c = context();
  int ranks[collective::max_team], world_ranks[collective::max_team];
  for (int r = 0; r < size; ++r) ranks[r] = r;
  MPI_Group group;
  if (mpi().Comm_group(comm, &group) != MPI_SUCCESS) return Reason::invalid_arguments;
  int code = mpi().Group_translate_ranks(group, size, ranks, c.world_group, world_ranks);
  mpi().Group_free(&group);
  if (code != MPI_SUCCESS) return Reason::invalid_arguments;
  for (int r = 0; r < size; ++r) {
    members[r] = c.job.member_of(world_ranks[r]);
    if (members[r] < 0) return Reason::many_nodes;
  }
  return Reason::none;
}

// The first collective on a communicator. All its ranks come here, and come to the same answer.
Communicator* make(MPI_Comm comm) {
  Context& c = context();
  int inter = 0, size = 0, rank = 0, members[collective::max_team];
  mpi().Comm_test_inter(comm, &inter);
  if (inter) return new (std::nothrow) Communicator(Reason::intercommunicator);
  mpi().Comm_size(comm, &size);
  mpi().Comm_rank(comm, &rank);
  if (size == 1) return new (std::nothrow) Communicator(Reason::single_rank);
  if (size > collective::max_team) return new (std::nothrow) Communicator(Reason::many_ranks);
  Reason reason = members_of(comm, size, members);
  if (reason != Reason::none) return new (std::nothrow) Communicator(reason);
  return Communicator::create(c.job, c.policy, members, size, rank, &comm);
}

Communicator* look_up(MPI_Comm comm) {
  Context& c = context();
  Communicator* communicator = nullptr;
  int found = 0;
  if (mpi().Comm_get_attr(comm, c.keyval, &communicator, &found) != MPI_SUCCESS) return nullptr;
  if (found) return communicator;
  trace::takes_long();
  communicator = make(comm);
  if (communicator == nullptr) communicator = c.without_memory;
  mpi().Comm_set_attr(comm, c.keyval, communicator);
  return communicator;
}

// Null: nothing can be said of this handle; MPI reports what is wrong with it.
Communicator* find(MPI_Comm comm) {
  uintptr_t key = key_of(comm);
  uint64_t generation = context().generation.load(std::memory_order_acquire);
  Remembered& slot = remembered[(key ^ (key >> 8)) % remembered_slots];
  if (slot.key == key && slot.generation == generation) return slot.communicator;
  if (comm == comm_null() || key == 0) return nullptr;
  Communicator* communicator = look_up(comm);
  if (communicator != nullptr) slot = {key, generation, communicator};
  return communicator;
}

bool decline(Call& call, Reason reason) {
  call.reason = uint32_t(reason);
  return false;
}

constexpr MPI_Count most_brief = 256;  // elements that a single rank moves in no time

// One call on its way: everything a hook needs before its buffers are looked at.
struct Entry {
  Communicator* communicator = nullptr;

  // False: declined, the call says why.
  bool admit(MPI_Comm comm, Call& call, MPI_Count count = 0) {
    if (!context().active.load(std::memory_order_acquire)) return decline(call, Reason::not_joined);
    communicator = find(comm);
    if (communicator == nullptr) return decline(call, Reason::invalid_arguments);
    if (communicator->reason() == Reason::none) return true;
    call.brief = communicator->reason() == Reason::single_rank && count <= most_brief;
    return decline(call, communicator->reason());
  }

  bool has_rank(int rank) const { return rank >= 0 && rank < communicator->size(); }

  // Runs the request. False: declined. True: call.code is set.
  bool run(const Request& request, MPI_Comm comm, Call& call) { return tell(communicator->run(request), comm, call); }

  // The same in two steps: when prepare() has said true and call.code is MPI_SUCCESS, finish() or give_up() must follow.
  bool prepare(const Request& request, MPI_Comm comm, Call& call) { return tell(communicator->prepare(request), comm, call); }
  void finish(const Request& request, MPI_Comm comm, Call& call) {
    Status status = communicator->execute(request, int(call.algorithm));
    if (!status.ok()) call.code = report(status, comm);
  }
  void give_up(int code, MPI_Comm comm, Call& call) {
    communicator->abandon();
    log(Level::error, "this rank cannot take part in a collective (%s): all collectives on this communicator fail from now on",
        code == MPI_ERR_NO_MEM ? "no memory" : "its buffers cannot be read");
    call.code = raise(comm, code);
  }

  bool tell(const engine::Outcome& outcome, MPI_Comm comm, Call& call) {
    if (outcome.algorithm < 0) return decline(call, outcome.reason);
    call.code = MPI_SUCCESS;
    call.algorithm = uint32_t(outcome.algorithm);
    if (!outcome.status.ok()) call.code = report(outcome.status, comm);
    return true;
  }

  int report(const Status& status, MPI_Comm comm) const {
    log(Level::error, "%s (rank %d of the communicator) in a collective: raising MPI_ERR_OTHER", status.what, status.detail);
    return raise(comm, MPI_ERR_OTHER);
  }

  static int raise(MPI_Comm comm, int code) {
    mpi().Comm_call_errhandler(comm, code);
    return code;
  }
};

bool done_with_nothing(Call& call) {
  call.code = MPI_SUCCESS;
  return true;
}

// Codes of the handles that are no operation to reduce with.
bool is_no_reduction(MPI_Op op) {
  for (const char* name : {"MPI_OP_NULL", "MPI_REPLACE", "MPI_NO_OP"}) {
    MPI_Op known;
    if (predefined(name, &known) && known == op) return true;
  }
  return false;
}

// Fills in op, type and element size. What is decided here is equal on all ranks, as op and datatype are.
Reason describe_reduction(MPI_Op op, const Layout& layout, Request* request) {
  if (named_op(op, &request->op)) {
    if (!layout.named) return Reason::unsupported_type;
    if (layout.kernel == kernels::Type::opaque || !kernels::defined(request->op, layout.kernel)) return Reason::unsupported_type;
    request->type = layout.kernel;
    request->element = layout.extent;
    return request->element == kernels::size_of(layout.kernel) ? Reason::none : Reason::unsupported_type;
  }
  if (is_no_reduction(op)) return Reason::invalid_arguments;
  request->op = kernels::Op::user;
  request->element = layout.size;
  return Reason::none;
}

// What a call does with this rank's buffers. `in` or `out` may have no layout: this rank gives or gets nothing.
struct Job {
  Buffer in, out;
  UserReduction* user;
  MPI_Comm comm;
};

int give_input(const Job& job, size_t elements, Room& room, size_t bytes, Communicator& communicator) {
  if (!room.reserve(bytes, communicator)) return MPI_ERR_NO_MEM;
  if (job.user && !job.user->prepare(elements)) return MPI_ERR_NO_MEM;
  return job.in.layout ? load(job.in, room.data()) : MPI_SUCCESS;
}

// Buffers with gaps or on a GPU: their bytes are brought into host memory, where the algorithm works in place.
[[gnu::noinline, gnu::cold]] bool run_staged(Entry& entry, const Job& job, Request& request, Call& call) {
  if (!entry.prepare(request, job.comm, call)) return false;
  if (call.code != MPI_SUCCESS) return true;
  Room room;
  if (int code = give_input(job, request.count, room, request.bytes(), *entry.communicator)) {
    entry.give_up(code, job.comm, call);
    return true;
  }
  request.input = room.data();
  request.output = job.out.layout ? room.data() : nullptr;
  if (request.kind == collective::Kind::bcast) request.output = room.data();
  entry.finish(request, job.comm, call);
  if (call.code != MPI_SUCCESS) return true;
  int code = job.user ? job.user->error() : MPI_SUCCESS;
  if (code == MPI_SUCCESS && job.out.layout) code = store(job.out, room.data());
  if (code != MPI_SUCCESS) call.code = Entry::raise(job.comm, code);
  return true;
}

struct Reduction {
  const void* send;
  void* receive;
  bool receives;  // this rank gets the result
  MPI_Count count;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
};

// A predefined operation works on elements with their gaps, if any: they are bytes like others.
bool run_predefined(Entry& entry, const Reduction& r, const Layout& layout, Request& request, Call& call) {
  request.input = r.send;
  request.output = r.receives ? r.receive : nullptr;
  if (__builtin_expect(platform::reachable(request.input, request.output), 1)) return entry.run(request, r.comm, call);
  Layout bytes = layout;
  bytes.size = layout.extent;
  bytes.dense = true;
  Job job{{r.send, request.count, &bytes}, {r.receive, request.count, r.receives ? &bytes : nullptr}, nullptr, r.comm};
  return run_staged(entry, job, request, call);
}

bool run_user(Entry& entry, const Reduction& r, const Layout& layout, Request request, Call& call) {
  UserReduction user(layout, r.op);
  request.user = user.callback();
  Job job{{r.send, request.count, &layout}, {r.receive, request.count, r.receives ? &layout : nullptr}, &user, r.comm};
  if (!job.in.usable() || !job.out.usable()) return run_staged(entry, job, request, call);
  request.input = r.send;
  request.output = r.receives ? r.receive : nullptr;
  if (!entry.run(request, r.comm, call)) return false;
  if (call.code == MPI_SUCCESS && user.error() != MPI_SUCCESS) call.code = Entry::raise(r.comm, user.error());
  return true;
}

// The newest reduction of this thread of a predefined type by a predefined operation, whose meaning never changes: programs
// repeat themselves.
struct Described {
  MPI_Datatype type{};
  MPI_Op op{};
  bool valid = false;
  Layout layout;
  kernels::Op kernel_op{};
};
__attribute__((tls_model("initial-exec"))) constinit thread_local Described described;

// False: MPI knows of no such type. *reason says whether the reduction can be done.
bool describe_operands(MPI_Datatype type, MPI_Op op, Layout* layout, Request* request, Reason* reason) {
  Described& last = described;
  if (last.valid && type == last.type && op == last.op) {
    *layout = last.layout;
    request->op = last.kernel_op;
    request->type = last.layout.kernel;
    request->element = last.layout.extent;
    *reason = Reason::none;
    return true;
  }
  if (!describe(type, layout)) return false;
  *reason = describe_reduction(op, *layout, request);
  if (*reason == Reason::none && layout->named && request->op != kernels::Op::user) last = {type, op, true, *layout, request->op};
  return true;
}

bool run_reduction(Entry& entry, const Reduction& r, Request& request, Call& call) {
  Layout layout;
  Reason reason;
  if (r.count < 0 || !describe_operands(r.type, r.op, &layout, &request, &reason))
    return decline(call, Reason::invalid_arguments);
  request.count = size_t(r.count);
  call.bytes = request.count * layout.size;
  if (reason != Reason::none) return decline(call, reason);
  if (request.bytes() == 0) return done_with_nothing(call);
  if (request.op != kernels::Op::user) return run_predefined(entry, r, layout, request, call);
  return run_user(entry, r, layout, request, call);
}

}  // namespace

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
  if (count < 0 || !describe(type, &layout) || !entry.has_rank(root)) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = collective::Kind::bcast;
  request.count = call.bytes = size_t(count) * layout.size;  // in bytes: the root's elements may be cut otherwise
  request.root = root;
  if (request.bytes() == 0) return done_with_nothing(call);
  bool is_root = entry.communicator->rank() == root;
  Buffer whole{buffer, size_t(count), &layout};
  if (!whole.usable())
    return run_staged(entry, is_root ? Job{whole, {}, nullptr, comm} : Job{{}, whole, nullptr, comm}, request, call);
  request.input = request.output = buffer;
  return entry.run(request, comm, call);
}

bool reduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call, count)) return false;
  if (!entry.has_rank(root)) return decline(call, Reason::invalid_arguments);
  bool is_root = entry.communicator->rank() == root;
  if (send == MPI_IN_PLACE && !is_root) return decline(call, Reason::invalid_arguments);
  Request request;
  request.kind = collective::Kind::reduce;
  request.root = root;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_reduction(entry, {input, receive, is_root, count, type, op, comm}, request, call);
}

bool allreduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call) {
  Entry entry;
  if (!entry.admit(comm, call, count)) return false;
  Request request;
  request.kind = collective::Kind::allreduce;
  const void* input = send == MPI_IN_PLACE ? receive : send;
  return run_reduction(entry, {input, receive, true, count, type, op, comm}, request, call);
}

}  // namespace stretto::shim
