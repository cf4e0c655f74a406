// What a profile knows of each communicator. It hangs on the communicator as an attribute, so that a handle that is used again
// never means the former one.
#pragma once
#include <atomic>

#include "shim/profile/groups.hpp"
#include "shim/profile/words.hpp"
#include "trace/tracer.hpp"

namespace stretto::shim::profile {

// Which neighbours of a topology there are; null pointers: all.
struct Neighbours {
  int sources = 0, destinations = 0;
  bool* absent_sources = nullptr;  // MPI_PROC_NULL, at the edge of a Cartesian grid
  bool* absent_destinations = nullptr;
};

struct Communicator {
  uint64_t identity = 0;
  const Members* own = nullptr;
  const Members* remote = nullptr;  // of an intercommunicator
  std::atomic<const Neighbours*> neighbours{nullptr};
  std::atomic<uint32_t> sequence{0};  // collectives called so far
  std::atomic<uint32_t> holders{1};   // the attribute, and persistent requests
  int rank = 0, size = 0;
  uint16_t index = trace::none16;
  trace::CommunicatorEntry* entry = nullptr;  // null: the table is full
  bool is_world = false;
  MPI_Comm handle{};
  Communicator *previous = nullptr, *next = nullptr;  // all that live

  bool inter() const { return remote != nullptr; }
  const Members* partners() const { return remote ? remote : own; }
};

// After MPI_Init; false: MPI gives no attribute key, and no communicator will be known.
bool prepare_communicators();

// What a thread remembers of handles: valid while no communicator has been freed since.
struct RememberedCommunicator {
  uintptr_t key = 0;
  uint64_t generation = 0;
  Communicator* communicator = nullptr;
};
inline constexpr size_t remembered_communicators = 32;
extern constinit thread_local RememberedCommunicator known_communicators[remembered_communicators];
extern constinit std::atomic<uint64_t> communicators_freed;  // and one more

Communicator* look_up_communicator(MPI_Comm comm, RememberedCommunicator& slot);

// Null: not one, or nothing can be said of it.
inline Communicator* communicator_of(MPI_Comm comm) {
  const uintptr_t key = key_of(comm);
  RememberedCommunicator& slot = known_communicators[(key ^ (key >> 8u)) % remembered_communicators];
  const bool is_known = slot.key == key && slot.generation == communicators_freed.load(std::memory_order_acquire);
  return __builtin_expect(is_known, 1) ? slot.communicator : look_up_communicator(comm, slot);
}

void hold(Communicator* communicator);
void let_go(Communicator* communicator);

const Neighbours* neighbours_of(Communicator* communicator);

// How a communicator came to be. The key is equal on all its members.
struct Origin {
  const char* how = "first seen in a call";  // before "of" and the parent's name
  uint64_t parent = 0;
  char parent_name[72] = {};
  uint64_t key = 0;
};
Origin origin_from(const char* how, Communicator* parent, uint64_t key);

// A communicator that was just made. `number` says the how-many-th with this origin and these members it is, where that was
// drawn before (draw_number); else it is drawn now.
void communicator_made(MPI_Comm comm, const Origin& origin, const uint32_t* number = nullptr);
uint32_t draw_number(const Origin& origin, const Members* own, const Members* remote);

// Asks MPI for the name again: a program may give it late.
void refresh_name(Communicator* communicator);
// Before MPI_Finalize: all names once more; MPI is not asked any more.
void end_communicators();

}  // namespace stretto::shim::profile
