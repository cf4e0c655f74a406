// Making and destroying communicators.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "nccl/wrap.hpp"

namespace stretto::nccl {
namespace {

// A communicator that will stand at `where` when the outermost group has ended.
struct Creation {
  Communicator* communicator;
  Comm* where;
  Creation* next;
};
constinit thread_local Creation* creations = nullptr;

bool failed(Result result) {
  return result != success && result != in_progress;
}

void complete_at(Communicator* communicator, Comm* where, Result result) {
  if (failed(result)) return gone(communicator);
  if (where && *where) made(communicator, *where, result == success);
}

void complete_later(Communicator* communicator, Comm* where) {
  Creation* creation = new (std::nothrow) Creation{communicator, where, creations};
  if (creation) creations = creation;
}

// Runs what makes one communicator.
template <typename Forward>
Result make(Function function, const Plan& plan, Comm* where, Forward forward) {
  Thread& t = this_thread;
  Communicator* communicator = plan_communicator(plan);
  t.making = communicator;
  const Result result = run_plain(function, forward);
  t.making = nullptr;
  if (t.depth && !failed(result))
    complete_later(communicator, where);
  else
    complete_at(communicator, where, result);
  return result;
}

const char* name_in(const Config* config) {
  return config && config->size >= sizeof(Config) && config->comm_name ? config->comm_name : "";
}

Plan plan_of(const UniqueId* ids, int count, int size, int rank, const char* name) {
  return {identity_of(ids, count), 0, size, rank, name};
}

struct Child {
  Plan plan;
  char name[72];
};

// `how`: "split"; `distinction` is what NCCL tells members of different children apart by.
Child child_of(Comm comm, const char* how, uint64_t distinction, const char* name) {
  Communicator* parent = communicator_of(comm);
  Child child;
  snprintf(child.name, sizeof child.name, "%s of %.56s", how, *parent->name ? parent->name : "an NCCL communicator");
  child.plan.identity = identity_of_child(parent, distinction);
  child.plan.parent = parent->identity;
  child.plan.name = name;
  return child;
}

uint64_t hash_of_ranks(const int* ranks, int count) {
  uint64_t hash = uint64_t(count);
  for (int i = 0; ranks && i < count; ++i) hash = hash * 0x9e3779b97f4a7c15u + uint64_t(ranks[i]) + 1;
  return hash;
}

template <typename Forward>
Result make_child(Function function, Child child, Comm* where, Forward forward) {
  if (!*child.plan.name) child.plan.name = child.name;
  return make(function, child.plan, where, forward);
}

// Runs what ends a communicator: another may have its address before the call has returned.
template <typename Forward>
Result end_communicator(Function function, Comm comm, Forward forward) {
  if (!passes_through() && comm) gone(communicator_of(comm));
  return run_plain(function, forward);
}

template <typename... Arguments>
auto forwarder(AnyFunction function, Arguments... arguments) {
  return [=] { return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...); };
}

}  // namespace

void complete_creations(Result result) {
  while (creations) {
    Creation* creation = creations;
    creations = creation->next;
    complete_at(creation->communicator, creation->where, result);
    delete creation;
  }
}

}  // namespace stretto::nccl

using namespace stretto::nccl;

#define STRETTO_REAL(name) real(name, __builtin_return_address(0))
#define STRETTO_MAKER(name) (look_for_libraries(), STRETTO_REAL(name))

STRETTO_EXPORT Result ncclCommInitRank(Comm* comm, int size, UniqueId id, int rank) {
  auto forward = forwarder(STRETTO_MAKER(CommInitRank), comm, size, id, rank);
  if (passes_through()) return forward();
  return make(CommInitRank, plan_of(&id, 1, size, rank, ""), comm, forward);
}

STRETTO_EXPORT Result ncclCommInitRankConfig(Comm* comm, int size, UniqueId id, int rank, Config* config) {
  auto forward = forwarder(STRETTO_MAKER(CommInitRankConfig), comm, size, id, rank, config);
  if (passes_through()) return forward();
  return make(CommInitRankConfig, plan_of(&id, 1, size, rank, name_in(config)), comm, forward);
}

STRETTO_EXPORT Result ncclCommInitRankScalable(Comm* comm, int size, int rank, int id_count, UniqueId* ids, Config* config) {
  auto forward = forwarder(STRETTO_MAKER(CommInitRankScalable), comm, size, rank, id_count, ids, config);
  if (passes_through()) return forward();
  return make(CommInitRankScalable, plan_of(ids, ids ? id_count : 0, size, rank, name_in(config)), comm, forward);
}

// All ranks are this process's.
STRETTO_EXPORT Result ncclCommInitAll(Comm* comms, int count, const int* devices) {
  auto forward = forwarder(STRETTO_MAKER(CommInitAll), comms, count, devices);
  if (passes_through() || !comms || count <= 0) return forward();
  Plan plan{identity_here(), 0, count, 0, ""};
  Communicator** planned = static_cast<Communicator**>(calloc(size_t(count), sizeof(Communicator*)));
  if (!planned) return forward();
  for (plan.rank = 0; plan.rank < count; ++plan.rank) planned[plan.rank] = plan_communicator(plan);
  const Result result = run_plain(CommInitAll, forward);
  for (int i = 0; i < count; ++i) complete_at(planned[i], &comms[i], result);
  free(planned);
  return result;
}

STRETTO_EXPORT Result ncclCommSplit(Comm comm, int color, int key, Comm* made_comm, Config* config) {
  auto forward = forwarder(STRETTO_MAKER(CommSplit), comm, color, key, made_comm, config);
  if (passes_through() || !comm) return forward();
  const Child child = child_of(comm, "split", uint64_t(int64_t(color)), name_in(config));
  if (color == no_color) return run_plain(CommSplit, forward);  // takes part, and gets none
  return make_child(CommSplit, child, made_comm, forward);
}

STRETTO_EXPORT Result ncclCommShrink(Comm comm, int* excluded, int excluded_count, Comm* made_comm, Config* config, int flags) {
  auto forward = forwarder(STRETTO_MAKER(CommShrink), comm, excluded, excluded_count, made_comm, config, flags);
  if (passes_through() || !comm) return forward();
  const Child child = child_of(comm, "shrink", hash_of_ranks(excluded, excluded_count), name_in(config));
  return make_child(CommShrink, child, made_comm, forward);
}

// The new ranks know neither the parent nor, all of them, its id: the size is what all have in common.
STRETTO_EXPORT Result ncclCommGrow(Comm comm, int size, const UniqueId* id, int rank, Comm* made_comm, Config* config) {
  auto forward = forwarder(STRETTO_MAKER(CommGrow), comm, size, id, rank, made_comm, config);
  if (passes_through()) return forward();
  return run_plain(CommGrow, forward);  // taken up at its first call
}

STRETTO_EXPORT Result ncclCommFinalize(Comm comm) {
  return run_plain(CommFinalize, forwarder(STRETTO_REAL(CommFinalize), comm));
}

STRETTO_EXPORT Result ncclCommDestroy(Comm comm) {
  return end_communicator(CommDestroy, comm, forwarder(STRETTO_REAL(CommDestroy), comm));
}

STRETTO_EXPORT Result ncclCommAbort(Comm comm) {
  return end_communicator(CommAbort, comm, forwarder(STRETTO_REAL(CommAbort), comm));
}
