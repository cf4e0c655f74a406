// The communicators of this process: who they are in the trace, which ncclComm_t they have, and how many collectives ran on them.
//
// Identity. All members of a communicator must give it the same number without asking one another:
//   made from unique ids (ncclCommInitRank...)   a hash of the ids, which all members pass
//   made from another one (split, shrink)        a hash of the parent's identity, of how many its members made of it before, and
//   of the colour seen by the profiler plugin alone            NCCL's own hash not seen when it was made                    a
//   guess (its size and how many such there were), told in a note
#pragma once
#include <atomic>
#include <cstdint>

#include "nccl/abi.hpp"
#include "trace/trace.hpp"

namespace stretto::nccl {

struct Communicator {
  std::atomic<Comm> handle{nullptr};    // null: not made yet, or gone
  std::atomic<void*> context{nullptr};  // what the profiler plugin knows it by
  std::atomic<uint32_t> next_sequence{0};
  std::atomic<uint32_t> next_child{0};
  std::atomic<uint32_t> entry{trace::none16};  // index in the trace
  uint64_t identity = 0, parent = 0, created_ticks = 0;
  int size = 0, rank = -1, device = -1, nodes = 0;
  const void* nccl = nullptr;  // whose it is, as library_asked() tells it
  bool wrapped = false;        // its calls are seen by the wrappers
  bool alive = true;
  char name[72] = {};
  Communicator* next = nullptr;
};

uint64_t identity_of(const UniqueId* ids, int count);
uint64_t identity_of_child(Communicator* parent, uint64_t distinction);
uint64_t identity_here();  // differs from that of every other call and process

// What is known before NCCL makes a communicator. size 0, rank -1: not known yet. Never null.
struct Plan {
  uint64_t identity = 0, parent = 0;
  int size = 0, rank = -1;
  const char* name = "";
  int device = -1;
  int nodes = 0;
};
Communicator* plan_communicator(const Plan& plan);
// It exists; asks NCCL for what is not known yet, unless NCCL still makes it (`ready`): then at its first call, since NCCL keeps
// such a question as an error of the communicator.
void made(Communicator* communicator, Comm handle, bool ready);
void gone(Communicator* communicator);  // it was not made, or it was destroyed

// Never null: a communicator that was not seen when it was made is taken up now.
Communicator* communicator_of(Comm handle);

// The communicator that the profiler plugin means, `mine` if that may be it; a new one where the wrappers have none.
// null: there are several that it may be, and the first call will tell.
Communicator* communicator_for_plugin(Communicator* mine, const Plan& plan, void* context);
void bind_context(Communicator* communicator, void* context);

// Its index in the trace's table, entered there at the first question, when its size is known at the latest.
uint16_t entry_of(Communicator* communicator);

// NCCL knows no world ranks. Where a communicator is as large as the world and this process has the same rank in both, its other
// members are taken to have so too; -1: not known.
int world_rank_of(const Communicator* communicator, int rank);

// The location of its buffers as an Event tells it: of this device, for both buffers.
uint8_t device_location(const Communicator* communicator);

}  // namespace stretto::nccl
