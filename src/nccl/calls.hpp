// One call of a wrapped function: what is known of it, and when it becomes an event.
//
// Outside of a group NCCL launches within the call: the event is written when the call returns. Within ncclGroupStart ...
// ncclGroupEnd a call only notes what is to be done. So the calls of a group wait here until the group has ended: then they have
// their sequence numbers (a simulated group has done nothing, and leaves no calls), and the profiler plugin has told the
// algorithms.
#pragma once
#include <cstdint>

#include "nccl/communicators.hpp"
#include "nccl/functions.hpp"
#include "trace/tracer.hpp"

namespace stretto::nccl {

// Of collectives and point-to-point calls.
struct Operands {
  Function function;
  const void* send = nullptr;
  const void* receive = nullptr;
  size_t count = 0;
  Datatype datatype = 0;
  Op op = -1;
  int peer = trace::no_peer;  // or the root
  Comm comm = nullptr;
};

struct Api;  // the profiler plugin's view of a call

struct Call {
  trace::CallFacts facts;
  Operands operands;
  uint64_t begin = 0, end = 0;
  Communicator* communicator = nullptr;
  Api* api = nullptr;      // valid while api->serial == serial
  uint64_t serial = 0;     // number of this call or of its group in the thread
  bool operation = false;  // collective or point to point
  bool matched = false;    // by an event of the profiler plugin
};

// What this thread is doing in NCCL.
struct Thread {
  bool inside;  // in a wrapper: NCCL calling itself is not seen
  bool ending;  // in the ncclGroupEnd that ends the outermost group
  uint32_t depth;
  Call* current;
  Communicator* making;  // by the wrapper that is running
  uint64_t serial;
  Call* waiting;  // the group's calls
  uint32_t waiting_count, waiting_capacity;
};
extern constinit thread_local Thread this_thread;

// Facts of an operation on a communicator; also for what the profiler plugin alone sees.
trace::CallFacts describe(const Operands& operands, Communicator* communicator);
bool is_collective(Function function);
uint32_t next_sequence(Communicator* communicator);

void begin_operation(Call& call, const Operands& operands);
void begin_plain(Call& call, Function function);
void end_call(Call& call, Result result);

enum class Outcome { done, failed, simulated };
void enter_group();
void before_group_end(bool simulated);  // of the outermost group: its calls get their numbers
void after_group_end(Outcome outcome);  // and become events, unless they were only simulated

// The call of this thread that the plugin's event belongs to, by its operands; null: none.
Call* match_call(const Operands& operands, const Communicator* communicator);

// NCCL's functions call one another by their public names: only the outermost counts.
class Inside {
 public:
  Inside() { this_thread.inside = true; }
  ~Inside() { this_thread.inside = false; }
  Inside(const Inside&) = delete;
};

}  // namespace stretto::nccl
