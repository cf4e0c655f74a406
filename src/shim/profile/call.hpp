// One call of the program on its way, as the profile sees it.
#pragma once
#include "base/clock.hpp"
#include "platform/device_memory.hpp"
#include "shim/profile/requests.hpp"
#include "shim/profile/status.hpp"
#include "shim/profile/windows.hpp"
#include "shim/profile/words.hpp"
#include "trace/tracer.hpp"

namespace stretto::shim::profile {

// What is known of a call, gathered before and after it; how each family does it stands in traffic.cpp (collectives),
// messages.cpp (point to point), completions.cpp, one_sided.cpp and creations.cpp.
struct Call {
  Words words;
  trace::CallFacts facts;
  uint64_t begin, end = 0;
  uint32_t function;
  Communicator* communicator = nullptr;
  const Members* partners = nullptr;  // that peers are ranks of
  uint64_t newest = 0;                // request number when the call began
  uintptr_t handle = 0;               // of the request, window, message or communicator that the call will change
  uintptr_t* handles = nullptr;       // of several requests, in this thread's memory
  MPI_Status* statuses = nullptr;     // that MPI will write: the program's or own ones
  union {
    trace::CallFacts second;  // the receiving half of a call that sends and receives; not set where there is none
  };
  MPI_Status own_status;  // where the program wants none of a single request
  bool has_second = false;
  bool own_statuses = false;  // the program wanted none

  Call(uint32_t index, Word* array, Language language, uint64_t entered)
      : words{descriptors[index], array, language}, begin(entered), function(index) {}
  const Descriptor& d() const { return words.d; }
  bool recording() const { return trace::recording != trace::Mode::off; }
  void add_part(const trace::CallFacts& part) const {
    if (part.direction != trace::Direction::none || part.collective || trace::recording == trace::Mode::full)
      if (recording()) trace::add_part(part, begin, end);
  }
};

// Before the call, filling in facts.
void before_collective(Call& call);
void before_message(Call& call);
void before_completion(Call& call);
void before_one_sided(Call& call);
void before_creation(Call& call);
// After it succeeded.
void after_message(Call& call);
void after_completion(Call& call);
void after_one_sided(Call& call);
void after_creation(Call& call);

// After it was recorded: its parts.
void message_parts(const Call& call);
void completion_parts(Call& call, int code);
void one_sided_parts(const Call& call);

// Shared by the families.
void draw_sequence(trace::CallFacts& facts, Communicator* c);  // this is the next collective on its communicator
// Of a call that started or prepared one.
void remember_request(Call& call, bool sends, bool receives, LaterCommunicator* later = nullptr);
// Where the program wants no status, MPI gets memory for one all the same: it tells the actual source, tag and length.
void provide_statuses(Call& call, size_t count);
uintptr_t* handle_memory(size_t count);

// Peer and partner; MPI_PROC_NULL and wildcards are nobody.
inline void set_peer(Call& call, int rank) {
  if (__builtin_expect(rank == MPI_ANY_SOURCE, 0)) {
    call.facts.peer = trace::any_peer;
    call.facts.flags |= trace::any_source;
    return;
  }
  if (rank < 0) return;
  call.facts.peer = rank;
  call.facts.partner = call.partners ? call.partners->rank(rank) : -1;
}

// 0..15, as in Event::location.
inline uint8_t place_of(const void* buffer) {
  if (buffer == nullptr || buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM) return 15;
  return platform::memory_place(buffer);
}

inline void set_places(Call& call, const void* send, const void* receive) {
  call.facts.location = uint8_t(place_of(send) | place_of(receive) << 4);
}

}  // namespace stretto::shim::profile
