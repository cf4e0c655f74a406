#include "nccl/plugin.hpp"

#include <stdio.h>

#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "nccl/library.hpp"
#include "nccl/pool.hpp"
#include "nccl/session.hpp"

namespace stretto::nccl {
namespace {

constexpr uint32_t most_outstanding = 8192;  // tasks of a communicator that wait for the GPU
constexpr uint64_t inexact_ns = 1'000'000;   // by which clocks may be compared wrongly

std::atomic<Context*> contexts{nullptr};  // newest first
Pool<Api> apis;
Pool<GroupHandle> groups;
Pool<Task> tasks;
Pool<Channel> channels;
Pool<Handle> others;

template <typename T>
T* make(Pool<T>& pool, Kind kind, Context* context) {
  T* made = pool.take();
  if (!made) return nullptr;
  made->kind = kind;
  made->context = context;
  return made;
}

// The communicator of a context: known since it was made, or known by the wrapper's call that is running in this thread.
Communicator* owner_of(Context* context, const Call* call) {
  Communicator* known = context->communicator.load(std::memory_order_acquire);
  if (known) return known;
  if (call && call->communicator) {
    known = call->communicator;
    bind_context(known, context);
  } else {
    known = communicator_for_plugin(nullptr, context->plan, context);
    if (!known) return nullptr;
  }
  context->communicator.store(known, std::memory_order_release);
  return known;
}

// The wrapper's call that an Api stands for, while it lasts and this thread is its.
Call* call_of(const Api* api) {
  Thread& t = this_thread;
  if (!api || api->owner != &t || api->serial != t.serial) return nullptr;
  if (api->position == not_waiting) return t.current;
  return api->position < t.waiting_count ? &t.waiting[api->position] : nullptr;
}

void link(Api* api, Call* call) {
  Thread& t = this_thread;
  call->api = api;
  call->matched = true;
  api->owner = &t;
  api->serial = call->serial;
  api->position = t.depth ? t.waiting_count : not_waiting;
  api->facts = call->facts;
}

// NCCL finds the times of a kernel by counting kernels on the GPU and on the host. Of some kinds it counts one only on the GPU
// (2.28.9: exchanges of messages; broadcasts in later ones: NVIDIA/nccl#2369), and tells the times of earlier kernels ever after:
// where the program has paused, they then begin before their calls.
[[gnu::cold]] void fall_behind(Context* context) {
  context->is_behind = true;
  if (!speaks()) return;
  log(Level::warning, "NCCL tells the times of earlier kernels (a fault of some of its versions): %s",
      "from here on this communicator's kernels are left out of the trace");
}

// Under the context's mutex.
void write_task(Context* context, Task* task) {
  if (!recording() || !task->stopped || task->last_ns < task->first_ns || context->is_behind) return;
  const HostClocks clocks = HostClocks::now();
  const uint64_t begin = clocks.ticks_at(context->clock.to_host_ns(task->first_ns));
  const uint64_t end = clocks.ticks_at(context->clock.to_host_ns(task->last_ns));
  if (begin + (clocks.at - clocks.ticks_at(clocks.ns - inexact_ns)) < task->called) return fall_behind(context);
  if (Communicator* communicator = context->communicator.load(std::memory_order_acquire))
    task->facts.communicator = entry_of(communicator);
  trace::leave(task->facts, begin, end < begin ? begin : end);
  task->stopped = task->started = 0;
  now_and_then();
}

void remove_task(Context* context, Task* task) {
  (task->older ? task->older->newer : context->oldest) = task->newer;
  (task->newer ? task->newer->older : context->newest) = task->older;
  task->outstanding = false;
  --context->outstanding;
  tasks.give(task);
}

void add_task(Context* context, Task* task) {
  const std::lock_guard<std::mutex> lock(context->mutex);
  task->older = context->newest;
  (context->newest ? context->newest->newer : context->oldest) = task;
  context->newest = task;
  task->outstanding = true;
  if (++context->outstanding <= most_outstanding) return;
  Task* oldest = context->oldest;
  write_task(context, oldest);
  remove_task(context, oldest);
}

void complete_task(Context* context, Task* task) {
  if (!task->outstanding || !task->launched || task->started < task->expected || task->started != task->stopped) return;
  write_task(context, task);
  remove_task(context, task);
}

void write_call(Api* api) {
  if (!api->untold || !api->launched || !recording()) return;
  if (Communicator* communicator = api->context->communicator.load(std::memory_order_acquire))
    api->facts.communicator = entry_of(communicator);
  trace::leave(api->facts, api->begin, api->end);
}

void stop_call(Api* api) {
  api->end = ticks();
  if (api->group) return;  // its group says when it is over
  write_call(api);
  if (!api->captured) apis.give(api);
}

void stop_group(GroupHandle* group) {
  for (Api* api = group->first; api;) {
    Api* next = api->next;
    if (!group->by_program) api->end = ticks();
    write_call(api);
    api->group = nullptr;
    if (!api->captured) apis.give(api);
    api = next;
  }
  groups.give(group);
}

void stop_task(Task* task) {
  Context* context = task->context;
  if (task->untold && recording()) {
    trace::CallFacts facts = task->facts;
    facts.function = uint16_t(facts.function - traced_count);
    if (facts.function == Send) facts.direction = trace::Direction::sent;
    if (facts.function == Recv) facts.direction = trace::Direction::received;
    trace::leave(facts, task->begin, ticks());
  }
  const std::lock_guard<std::mutex> lock(context->mutex);
  task->launched = true;
  complete_task(context, task);
}

void number(Api* api) {
  Communicator* communicator = api->context->communicator.load(std::memory_order_acquire);
  if (api->untold && api->facts.collective && communicator) api->facts.sequence = next_sequence(communicator);
}

// The calls of a group are numbered in the order in which they were made, at the first sign that the group is launched.
void number_group(Api* api) {
  if (!api->group) return api->launched ? void() : number(api);
  if (api->group->numbered) return;
  api->group->numbered = true;
  for (Api* a = api->group->first; a; a = a->next) number(a);
}

// The facts of a task whose call is known (by the wrapper or by version 5), or that is all there is of its call.
void describe_task(Task* task, Api* api, Call* call, const Operands& operands) {
  Communicator* communicator = owner_of(task->context, call);
  if (api && api->function == operands.function) {
    const bool untold_peer = !api->owner && operands.function >= Send;  // version 5 names it here only
    if (untold_peer && communicator) api->facts = describe(operands, communicator);
    if (api->untold && operands.send && operands.send == operands.receive && api->facts.collective)
      api->facts.flags |= trace::in_place;
    task->facts = api->facts;
  } else if (call && !api) {
    task->facts = call->facts;
  } else if (communicator) {
    task->facts = describe(operands, communicator);
    task->untold = !api && !communicator->wrapped;
    if (task->facts.collective) task->facts.sequence = task->untold ? next_sequence(communicator) : task->context->unmatched++;
  }
}

void flush(Context* context) {
  const std::lock_guard<std::mutex> lock(context->mutex);
  while (Task* task = context->oldest) {
    write_task(context, task);
    remove_task(context, task);
  }
}

}  // namespace

int wanted_events(int version) {
  using namespace profiler;
  if (!profiled()) return 0;
  uint64_t wanted = collective | point_to_point | kernel_channel;
  if (version >= 5) wanted |= group_call | collective_call | point_to_point_call;
  if (version >= 6) wanted |= copy_collective;
  return int(wanted);
}

Context* make_context(const char* comm_name, uint64_t comm_hash, int nodes, int ranks, int rank) {
  Context* context = new (std::nothrow) Context;
  if (!context) return nullptr;
  snprintf(context->name, sizeof context->name, "%s", comm_name ? comm_name : "");
  context->plan = {comm_hash ? comm_hash : 1, 0, ranks, rank, context->name};
  context->plan.device = current_device();
  context->plan.nodes = nodes;
  if (profiled()) {
    HostClocks::first();
    Communicator* communicator = communicator_for_plugin(this_thread.making, context->plan, context);
    context->communicator.store(communicator, std::memory_order_release);
    if (communicator && !communicator->wrapped) communicator_made();
  }
  context->next = contexts.load(std::memory_order_relaxed);
  while (!contexts.compare_exchange_weak(context->next, context, std::memory_order_release)) {
  }
  return context;
}

void end_context(Context* context) {
  flush(context);
  Communicator* communicator = context->communicator.load(std::memory_order_acquire);
  if (communicator && !communicator->wrapped) gone(communicator);
  context->ended.store(true, std::memory_order_release);
}

bool is_context(const void* address) {
  static thread_local const void* last = nullptr;
  if (address == last) return true;
  const Context* context = contexts.load(std::memory_order_acquire);
  while (context && context != address) context = context->next;
  if (context) last = address;
  return context != nullptr;
}

Handle* start_group(Context* context, bool by_program) {
  GroupHandle* group = make(groups, Kind::group, context);
  if (group) group->by_program = by_program;
  return group;
}

Handle* start_call(Context* context, Handle* parent, const Operands& operands, bool captured) {
  Api* api = make(apis, Kind::api, context);
  if (!api) return nullptr;
  GroupHandle* group = parent && parent->kind == Kind::group ? static_cast<GroupHandle*>(parent) : nullptr;
  api->begin = ticks();
  api->captured = captured;
  api->function = operands.function;
  api->grouped = group && group->by_program;
  Call* call = this_thread.current;
  Communicator* communicator = owner_of(context, call);
  const Function called = !call ? function_count : call->operands.function == Bcast ? Broadcast : call->operands.function;
  if (called == operands.function && !call->matched) {
    link(api, call);
  } else if (communicator && operands.function < operation_count) {
    api->facts = describe(operands, communicator);
    api->untold = !call;  // within a wrapper it is a message of a larger call
    if (api->untold && !api->grouped && recording()) trace::enter(api->facts, api->begin);
  }
  api->group = group;
  if (group) {
    (group->last ? group->last->next : group->first) = api;
    group->last = api;
  }
  return api;
}

Handle* start_task(Context* context, Handle* parent, const TaskFacts& known) {
  if (known.operands.function >= operation_count) return nullptr;
  Task* task = make(tasks, Kind::task, context);
  if (!task) return nullptr;
  Api* api = parent && parent->kind == Kind::api ? static_cast<Api*>(parent) : nullptr;
  if (api) launched_otherwise(api);
  Call* call = api ? call_of(api) : match_call(known.operands, context->communicator.load(std::memory_order_acquire));
  task->begin = ticks();
  task->called = api ? api->begin : call ? call->begin : 0;
  describe_task(task, api, call, known.operands);
  const uint8_t algorithm = algorithm_named(known.algorithm, known.protocol);
  if (call && known.algorithm) call->facts.outcome = algorithm;
  if (call) call->matched = true;
  if (api && known.algorithm) api->facts.outcome = algorithm;
  if (known.algorithm) task->facts.outcome = algorithm;
  task->facts.function = on_gpu(known.operands.function);
  task->facts.direction = trace::Direction::none;  // the partner sums count the call
  task->facts.flags &= uint8_t(~trace::failed);
  task->expected = known.channels ? known.channels : 1;
  add_task(context, task);
  return task;
}

void launched_otherwise(Handle* handle) {
  if (!handle || handle->kind != Kind::api) return;
  Api* api = static_cast<Api*>(handle);
  number_group(api);
  api->launched = true;
}

Handle* start_channel(Context* context, Handle* parent, uint64_t gpu_ns) {
  if (!parent || parent->kind != Kind::task) return nullptr;
  Channel* channel = make(channels, Kind::channel, context);
  if (!channel) return nullptr;
  Task* task = static_cast<Task*>(parent);
  const std::lock_guard<std::mutex> lock(context->mutex);
  context->clock.observe(gpu_ns, now_ns());
  channel->task = task;
  ++task->started;
  if (gpu_ns < task->first_ns) task->first_ns = gpu_ns;
  return channel;
}

Handle* start_other(Context* context) {
  return make(others, Kind::other, context);
}

void stop_channel_at(Handle* handle, uint64_t gpu_ns) {
  if (handle->kind != Kind::channel) return;
  Task* task = static_cast<Channel*>(handle)->task;
  const std::lock_guard<std::mutex> lock(handle->context->mutex);
  handle->context->clock.observe(gpu_ns, now_ns());
  if (gpu_ns > task->last_ns) task->last_ns = gpu_ns;
}

void stop(Handle* handle) {
  switch (handle->kind) {
    case Kind::other:
      others.give(handle);
      break;
    case Kind::group:
      stop_group(static_cast<GroupHandle*>(handle));
      break;
    case Kind::api:
      stop_call(static_cast<Api*>(handle));
      break;
    case Kind::task:
      stop_task(static_cast<Task*>(handle));
      break;
    case Kind::channel: {
      Channel* channel = static_cast<Channel*>(handle);
      Context* context = channel->context;
      const std::lock_guard<std::mutex> lock(context->mutex);
      ++channel->task->stopped;
      complete_task(context, channel->task);
      channels.give(channel);
      break;
    }
  }
}

void tell_sequence(Call& call) {
  Api* api = call.api;
  if (api->owner == &this_thread && api->serial == call.serial) api->facts.sequence = call.facts.sequence;
}

void write_outstanding() {
  for (Context* context = contexts.load(std::memory_order_acquire); context; context = context->next) flush(context);
}

}  // namespace stretto::nccl
