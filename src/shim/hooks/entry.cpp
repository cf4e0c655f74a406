#include "shim/hooks/entry.hpp"

#include <stdio.h>

#include <memory>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "shim/fault_tolerance.hpp"
#include "shim/mpi.hpp"
#include "shim/nodes.hpp"
#include "shim/nonblocking.hpp"
#include "shim/world_ranks.hpp"
#include "trace/stopwatch.hpp"

namespace stretto::shim {
namespace {

// members[r]: the job's member that is rank r, as far as a team has ranks. many_nodes, for all ranks alike, where some are not on
// this node.
Reason members_of(MPI_Comm comm, int size, int* members) {
  Context& c = context();
  if (size > c.job.local_size()) return Reason::many_nodes;
  bool here = true;
  const bool read = for_world_ranks(comm, size, [&](int r, int world_rank) {
    const int member = c.job.member_of(world_rank);
    if (r < collective::max_team) members[r] = member;
    return here = member >= 0;
  });
  if (!here) return Reason::many_nodes;
  if (!read) return Reason::invalid_arguments;
  return size > collective::max_team ? Reason::many_ranks : Reason::none;
}

// A state over nodes takes MPI's time and handles, so calls must first have come that are worth it. A rank that has no memory to
// remember that could not take part in making it.
Communicator* put_off(int size, int rank) {
  if (context().job.nodes() != engine::Nodes::joined) return new (std::nothrow) Communicator(Reason::many_nodes);
  Communicator* communicator = Communicator::put_off(size, rank);
  if (communicator != nullptr) return communicator;
  log(Level::error, "no memory for the state of a communicator over nodes: ending the job");
  end_job(comm_world(), MPI_ERR_NO_MEM);
  return nullptr;
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
  Reason reason = members_of(comm, size, members);
  if (reason == Reason::many_nodes) return put_off(size, rank);
  if (reason != Reason::none) return new (std::nothrow) Communicator(reason);
  return Communicator::create(c.job, c.policy, members, size, rank, &comm);
}

}  // namespace

__attribute__((tls_model("initial-exec"))) constinit thread_local Remembered remembered[remembered_slots];

namespace {

// False: MPI does not know the communicator. *communicator is null where it has no state.
bool read_attribute(MPI_Comm comm, Communicator** communicator) {
  constexpr int untouched = -1;  // an error handler of the program's may make a success of a failure
  int found = untouched;
  const int code = mpi().Comm_get_attr(comm, context().keyval, communicator, &found);
  if (code == MPI_SUCCESS && found == 0) *communicator = nullptr;
  return code == MPI_SUCCESS && found != untouched;
}

bool set_attribute(MPI_Comm comm, Communicator* communicator) {
  return mpi().Comm_set_attr(comm, context().keyval, communicator) == MPI_SUCCESS;
}

void end_without_attribute() {
  log(Level::error, "MPI keeps no attribute of a communicator, so this rank would soon know nothing of it: ending the job");
  end_job(comm_world(), MPI_ERR_NO_MEM);
}

__attribute__((tls_model("initial-exec"))) constinit thread_local BeingFreed* innermost_freed = nullptr;

}  // namespace

BeingFreed::BeingFreed(MPI_Comm comm) : comm_(comm) {
  if (comm == MPI_Comm{} || comm == comm_null()) return;
  communicator_ = known(comm);
  if (communicator_ != nullptr) communicator_->hold();
  outer_ = std::exchange(innermost_freed, this);
}

BeingFreed::~BeingFreed() {
  if (innermost_freed != this) return;
  innermost_freed = outer_;
  context().generation.fetch_add(1, std::memory_order_acq_rel);  // the callbacks' calls are remembered
  if (communicator_ == nullptr || context().is_common(communicator_)) return;
  if (made_here_) communicator_->set_freed();
  communicator_->let_go();
}

BeingFreed* BeingFreed::find(MPI_Comm comm) {
  BeingFreed* one = innermost_freed;
  while (one != nullptr && one->comm_ != comm) one = one->outer_;
  return one;
}

Communicator* known(MPI_Comm comm) {
  Communicator* communicator = nullptr;
  if (comm == comm_self()) return &context().of_self;
  return context().active.load(std::memory_order_acquire) && read_attribute(comm, &communicator) ? communicator : nullptr;
}

Communicator* look_up(MPI_Comm comm) {
  Context& c = context();
  if (comm == comm_self()) return &c.of_self;
  Communicator* communicator = nullptr;
  if (!read_attribute(comm, &communicator)) return nullptr;
  if (communicator != nullptr) return communicator;
  BeingFreed* const freed = BeingFreed::find(comm);
  if (freed != nullptr && freed->communicator() != nullptr) return freed->communicator();
  if (engine::Operation::current()) return &c.not_prepared;  // making it waits for others
  trace::takes_long();
  communicator = make(comm);
  if (communicator == nullptr)
    communicator = c.without_memory;
  else if (!communicator->never_takes_part())
    communicator->take_turns_with_mpi(c.turns);
  if (freed != nullptr) return freed->keep(communicator), communicator;
  if (!set_attribute(comm, communicator) && !communicator->never_takes_part()) end_without_attribute();
  return communicator;
}

void made_of_session(MPI_Comm comm) {
  if (context().active.load(std::memory_order_acquire) && !set_attribute(comm, &context().of_session)) end_without_attribute();
}

void make_put_off(Communicator& communicator, MPI_Comm comm) {
  trace::takes_long();
  communicator.take(std::unique_ptr<Communicator>(make_across_nodes(comm, communicator.size(), communicator.rank())));
}

bool is_of_session(MPI_Comm comm) {
  return known(comm) == &context().of_session;
}

// Not over nodes: MPI has few communicators to give for those.
void prepare_communicator(MPI_Comm comm) {
  Context& c = context();
  if (c.active.load(std::memory_order_acquire) && c.job.nodes() == engine::Nodes::one) find(comm);
}

bool Entry::is_revoked_meanwhile(MPI_Comm comm) const {
  if (engine::Operation::current() != nullptr || !is_revoked(comm)) return false;
  learn_of_revocation(comm);
  return true;
}

// A state takes as long to make as some dozens of small calls gain by it, or a single large one. Calls are counted when they
// begin, as an error in what follows may be one rank's alone; and only a blocking one may wait for the others.
bool Entry::admit_put_off(MPI_Comm comm) const {
  if (communicator->count_call() > context().nodes_after && !engine::Operation::current()) make_put_off(*communicator, comm);
  return !communicator->never_takes_part();
}

bool Entry::is_made_for_large(const Request& request, MPI_Comm comm) const {
  constexpr uint64_t large = 128 << 10;
  if (request.bytes() < large || engine::Operation::current()) return false;
  make_put_off(*communicator, comm);
  return !communicator->declines();
}

void Entry::finish(const Request& request, MPI_Comm comm, Call& call) const {
  Status status = communicator->execute(request, int(call.algorithm));
  if (!status.ok()) call.code = report(status, comm);
}

void Entry::give_up(int code, MPI_Comm comm, Call& call) const {
  if (communicator->spans_nodes()) {
    log(Level::error, "this rank cannot take part in a collective over several nodes: ending the job");
    return end_job(comm_world(), call.code = code);
  }
  communicator->abandon();
  log(Level::error, "this rank cannot take part in a collective (%s): all collectives on this communicator fail from now on",
      code == MPI_ERR_NO_MEM ? "no memory" : "its buffers cannot be read");
  call.code = raise(comm, code);
}

// What MPI says of messages that are too long it says of all calls that do not match.
int Entry::report(const Status& status, MPI_Comm comm) {
  bool mismatch = status.code == Code::truncated || status.code == Code::disagreed;
  char who[48] = "";
  if (status.code == Code::revoked) {
    if (!error_is_kept()) learn_of_revocation(comm);
    return raise(comm, error_of_revocation());  // the program knows why
  }
  const bool of_a_rank = (mismatch || status.code == Code::peer_lost) && status.detail >= 0;
  if (of_a_rank) snprintf(who, sizeof who, " (rank %d of the communicator)", status.detail);
  const char* name = mismatch ? "MPI_ERR_TRUNCATE" : "MPI_ERR_OTHER";
  int code = mismatch ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
  if (status.code == Code::peer_lost) code = error_of_death(&name);
  log(Level::error, "%s%s in a collective: raising %s", status.what, who, name);
  return raise(comm, code);
}

int raise(MPI_Comm comm, int code) {
  if (!error_is_kept()) mpi().Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace stretto::shim
