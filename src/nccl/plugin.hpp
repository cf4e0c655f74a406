// What the profiler plugin does with NCCL's events, whatever the version of the interface.
//
//   call (version 5)   a function of NCCL was called: tied to the wrapper's call that is running in this thread, or, where the
//   wrappers
//                      do not see it, a call of its own
//   task               NCCL launches a call's work: which algorithm; in version 4 this is all there is of the call
//   channel            a kernel's part: when it began and ended on the GPU; the first begin and the last end of a task's channels
//                      become one event "GPU nccl..."
#pragma once
#include <cstdint>
#include <mutex>

#include "nccl/calls.hpp"
#include "nccl/communicators.hpp"
#include "nccl/gpu_clock.hpp"
#include "nccl/profiler_abi.hpp"

namespace stretto::nccl {

enum class Kind : uint8_t { other, group, api, task, channel };

struct Context;

// What NCCL holds of an event. `chained` is the next plugin's handle for the same event.
struct Handle {
  Kind kind = Kind::other;
  Context* context = nullptr;
  void* chained = nullptr;
  Handle* next_free = nullptr;
};

struct Api : Handle {
  trace::CallFacts facts;
  Function function = function_count;
  uint64_t begin = 0, end = 0;
  Thread* owner = nullptr;  // with serial: the wrapper's call that this is
  uint64_t serial = 0;
  uint32_t position = 0;                // among its thread's waiting calls; not_waiting: the current one
  bool grouped = false;                 // by the program
  bool captured = false;                // in a CUDA graph: its tasks may come at any time
  bool untold = false;                  // the wrappers do not see it: the plugin writes the call
  bool launched = false;                // and not only simulated
  struct GroupHandle* group = nullptr;  // the program's, or one that NCCL makes for a single call
  Api* next = nullptr;                  // in it
};
inline constexpr uint32_t not_waiting = UINT32_MAX;

struct GroupHandle : Handle {
  Api* first = nullptr;
  Api* last = nullptr;
  bool by_program = false;
  bool numbered = false;  // its calls have their sequence numbers
};

struct Task : Handle {
  trace::CallFacts facts;  // of the event on the GPU
  uint64_t begin = 0;
  uint64_t called = 0;                          // in ticks: its kernel begins later
  uint64_t first_ns = UINT64_MAX, last_ns = 0;  // of the GPU's clock
  uint32_t expected = 1, started = 0, stopped = 0;
  bool launched = false;  // the host has done its part
  bool untold = false;
  bool outstanding = false;
  Task* older = nullptr;
  Task* newer = nullptr;
};

struct Channel : Handle {
  Task* task = nullptr;
};

// A communicator as NCCL knows it here. Never freed (some 300 bytes): communicators may share a proxy thread (splitShare), which
// goes on using the context of the one that made it when that has ended.
struct Context {
  Plan plan;
  char name[72] = {};
  std::atomic<Communicator*> communicator{nullptr};
  std::atomic<uint32_t> unmatched{0};  // collectives that the wrappers saw, but that could not be told which they are
  std::mutex mutex;                    // of what follows
  GpuClock clock;
  Task* oldest = nullptr;
  Task* newest = nullptr;
  uint32_t outstanding = 0;
  bool is_behind = false;  // NCCL tells of each kernel the times of an earlier one
  Context* next = nullptr;
  std::atomic<bool> ended{false};
  int version = 0;      // of the interface in which NCCL speaks
  int* mask = nullptr;  // NCCL's
  int own_mask = 0;
  // The next plugin's.
  bool chained = false;
  void* chained_context = nullptr;
};

// The events wanted for the trace itself; 0 where nothing is profiled.
int wanted_events(int version);
Context* make_context(const char* comm_name, uint64_t comm_hash, int nodes, int ranks, int rank);
void end_context(Context* context);
bool is_context(const void* address);  // of this process

// Null: not wanted, or no memory.
Handle* start_group(Context* context, bool by_program);
Handle* start_call(Context* context, Handle* group, const Operands& operands, bool captured);
struct TaskFacts {
  Operands operands;
  const char* algorithm = nullptr;
  const char* protocol = nullptr;
  uint32_t channels = 1;
};
Handle* start_task(Context* context, Handle* parent, const TaskFacts& facts);
void launched_otherwise(Handle* call);  // by copy engines: no kernel, and no task
Handle* start_channel(Context* context, Handle* parent, uint64_t gpu_ns);
Handle* start_other(Context* context);

void stop(Handle* handle);
void stop_channel_at(Handle* handle, uint64_t gpu_ns);

void tell_sequence(Call& call);  // its Api learns the call's number
void write_outstanding();        // at the end of the process

}  // namespace stretto::nccl
