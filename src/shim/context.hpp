// The one per-process state of acceleration. Made at the first use, never destroyed: calls may come until the very end.
#pragma once
#include <atomic>

#include "engine/communicator.hpp"
#include "engine/helper.hpp"
#include "engine/job.hpp"
#include "select/rules.hpp"
#include "shim/abi.hpp"

namespace stretto::shim {

struct Context {
  engine::Communicator no_memory{select::Reason::no_shared_memory};
  engine::Communicator not_prepared{select::Reason::not_prepared};
  engine::Communicator of_self{select::Reason::single_rank};    // MPI_COMM_SELF's: MPI_Finalize deletes its attributes first
  engine::Communicator of_session{select::Reason::of_session};  // stands for all that are made in a session, and of such
  engine::Job job;
  engine::Progress progress;
  engine::Helper helper;
  engine::Policy policy;
  bool starts = true;        // whether nonblocking and persistent collectives are taken over
  uint32_t turns = 0;        // STRETTO_TURNS
  uint64_t nodes_after = 0;  // STRETTO_NODES_AFTER
  select::Rules rules;
  MPI_Group world_group{};
  int neighbour = 0;  // another rank of MPI_COMM_WORLD
  std::atomic<bool> world_is_revoked{false};
  engine::Communicator* without_memory = &no_memory;  // stands for communicators whose state could not be allocated
  int keyval = MPI_KEYVAL_INVALID;
  std::atomic<bool> active{false};      // between a successful attach and detach
  std::atomic<uint64_t> generation{1};  // grows whenever a communicator is freed: what threads remember of handles is then stale
  char verdict[192] = "MPI_Init has not been seen";

  // Whether this is no communicator's own state.
  bool is_common(const engine::Communicator* state) const {
    return state == without_memory || state == &of_session || state == &of_self;
  }
};

extern constinit Context* made_context;  // null: not yet
Context& make_context();
inline Context& context() {
  Context* made = std::atomic_ref(made_context).load(std::memory_order_acquire);
  return __builtin_expect(made != nullptr, 1) ? *made : make_context();
}

}  // namespace stretto::shim
