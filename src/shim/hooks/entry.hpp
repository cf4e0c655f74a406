// How a hook comes to its communicator and tells its outcome. A hook is a function of the call's arguments alone: nothing of it
// is kept from one wait to the next but on its stack.
#pragma once
#include "collective/request.hpp"
#include "shim/context.hpp"
#include "shim/hooks.hpp"

namespace stretto::shim {

using collective::Request;
using engine::Communicator;
using select::Reason;

// What this thread remembers of handles. Valid while no communicator has been freed since.
struct Remembered {
  uintptr_t key = 0;
  uint64_t generation = 0;
  Communicator* communicator = nullptr;
};
inline constexpr size_t remembered_slots = 16;
__attribute__((tls_model("initial-exec"))) extern constinit thread_local Remembered remembered[remembered_slots];

// Looks a communicator up, or makes its state. Null: nothing can be said of this handle; MPI reports what is wrong with it.
Communicator* look_up(MPI_Comm comm);

// Its state if it has one, else null.
Communicator* known(MPI_Comm comm);

// Makes the state of one that was put off. Collective.
void make_put_off(Communicator& communicator, MPI_Comm comm);

inline Communicator* find(MPI_Comm comm) {
  uintptr_t key = key_of(comm);
  uint64_t generation = context().generation.load(std::memory_order_acquire);
  Remembered& slot = remembered[(key ^ (key >> 8)) % remembered_slots];
  if (slot.key == key && slot.generation == generation) return slot.communicator;
  if (comm == comm_null() || key == 0) return nullptr;
  Communicator* communicator = look_up(comm);
  if (communicator != nullptr && communicator != &context().not_prepared)
    remembered[(key ^ (key >> 8)) % remembered_slots] = {key, generation, communicator};
  return communicator;
}

// The one that a call runs on: a persistent collective has its own.
inline Communicator* communicator_of(MPI_Comm comm) {
  const engine::Operation* operation = engine::Operation::at_entry();
  return __builtin_expect(operation != nullptr && operation->own != nullptr, 0) ? operation->own : find(comm);
}

inline bool decline(Call& call, Reason reason) {
  call.reason = uint32_t(reason);
  return false;
}

inline bool done_with_nothing(Call& call) {
  call.code = MPI_SUCCESS;
  return true;
}

inline constexpr MPI_Count most_brief = 256;  // elements that a single rank moves in no time

// One call on its way: everything a hook needs before its buffers are looked at.
struct Entry {
  Communicator* communicator = nullptr;

  // False: declined, the call says why.
  bool admit(MPI_Comm comm, Call& call, MPI_Count count = 0) {
    if (!context().active.load(std::memory_order_acquire)) return decline(call, Reason::not_joined);
    communicator = communicator_of(comm);
    if (communicator == nullptr) return decline(call, Reason::invalid_arguments);
    if (communicator->reason() == Reason::none) return true;
    if (communicator->spans_nodes() && is_revoked_meanwhile(comm)) return decline(call, Reason::revoked);
    if (!communicator->declines() || (communicator->is_put_off() && admit_put_off(comm))) return true;
    call.brief = communicator->reason() == Reason::single_rank && count <= most_brief;
    return decline(call, communicator->reason());
  }

  // The same of a collective whose blocks vary.
  bool admit_varying(MPI_Comm comm, Call& call, collective::Kind kind) {
    if (!admit(comm, call)) return false;
    if (communicator->spans_nodes() && engine::Operation::current() == nullptr) communicator->agree_on_size(kind);
    return true;
  }

  bool has_rank(int rank) const { return rank >= 0 && rank < communicator->size(); }
  int rank() const { return communicator->rank(); }
  int size() const { return communicator->size(); }

  // Runs the request. False: declined. True: call.code is set.
  bool run(const Request& request, MPI_Comm comm, Call& call) const {
    engine::Outcome outcome = communicator->run(request);
    if (outcome.algorithm < 0 && is_made_for(request, comm)) outcome = communicator->run(request);
    return tell(outcome, comm, call);
  }

  // The same in two steps: when prepare() has said true and call.code is MPI_SUCCESS, finish() or give_up() must follow.
  bool prepare(const Request& request, MPI_Comm comm, Call& call) const {
    engine::Outcome outcome = communicator->prepare(request);
    if (outcome.algorithm < 0 && is_made_for(request, comm)) outcome = communicator->prepare(request);
    return tell(outcome, comm, call);
  }
  void finish(const Request& request, MPI_Comm comm, Call& call) const;
  void give_up(int code, MPI_Comm comm, Call& call) const;

 private:
  // Over nodes this rank may have heard of it by MPI alone.
  bool is_revoked_meanwhile(MPI_Comm comm) const;
  // Communicators that are put off get their state when a call begins after so many others, or for one that is large.
  bool admit_put_off(MPI_Comm comm) const;
  bool is_made_for(const Request& request, MPI_Comm comm) const {
    return communicator->is_put_off() && is_made_for_large(request, comm);
  }
  bool is_made_for_large(const Request& request, MPI_Comm comm) const;
  bool tell(const engine::Outcome& outcome, MPI_Comm comm, Call& call) const {
    if (outcome.algorithm < 0) return decline(call, outcome.reason);
    call.code = MPI_SUCCESS;
    call.algorithm = uint32_t(outcome.algorithm);
    if (!outcome.status.ok()) call.code = report(outcome.status, comm);
    return true;
  }
  static int report(const Status& status, MPI_Comm comm);
};

// Calls the communicator's error handler; returns the code.
int raise(MPI_Comm comm, int code);

}  // namespace stretto::shim
