#include "nccl/communicators.hpp"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "base/clock.hpp"
#include "nccl/library.hpp"
#include "nccl/session.hpp"

namespace stretto::nccl {
namespace {

std::mutex mutex;
Communicator* all = nullptr;          // newest first; entries stay for ever, so that pointers to them do
std::atomic<uint32_t> generation{0};  // of the association of handles
std::atomic<uint32_t> unseen{0};
constexpr uint32_t entering = 0x10000;  // an entry that another thread is about to write

uint64_t mix(uint64_t hash, const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3u;
  return hash;
}

// FNV's low bits are the good ones; identities are compared as a whole, and 0 means none.
uint64_t finish(uint64_t hash) {
  hash ^= hash >> 32;
  return hash ? hash : 1;
}
constexpr uint64_t seed = 0xcbf29ce484222325u;

Communicator* search(Comm handle) {
  for (Communicator* c = all; c; c = c->next)
    if (c->alive && c->handle.load(std::memory_order_relaxed) == handle) return c;
  return nullptr;
}

Communicator* add(const Plan& plan, bool wrapped) {
  static Communicator beyond_memory;
  Communicator* c = new (std::nothrow) Communicator;
  if (!c) return &beyond_memory;
  c->identity = plan.identity;
  c->parent = plan.parent;
  c->size = plan.size;
  c->rank = plan.rank;
  c->device = plan.device;
  c->created_ticks = ticks();
  c->nccl = library_asked();
  c->wrapped = wrapped;
  snprintf(c->name, sizeof c->name, "%s", plan.name ? plan.name : "");
  c->next = all;
  all = c;
  return c;
}

// The profiler plugin may learn the same in another thread meanwhile.
void ask_library(Communicator* c, Comm handle) {
  const int size = comm_size(handle, c->nccl), rank = comm_rank(handle, c->nccl), device = comm_device(handle, c->nccl);
  const std::lock_guard<std::mutex> lock(mutex);
  if (c->size == 0) c->size = size;
  if (c->rank < 0) c->rank = rank;
  if (c->device < 0) c->device = device;
}

Communicator* take_up(Comm handle) {
  Plan plan;
  plan.size = comm_size(handle, library_asked());
  plan.rank = comm_rank(handle, library_asked());
  plan.name = "not seen when it was made";
  const uint64_t facts[2] = {uint64_t(plan.size), unseen.fetch_add(1)};
  plan.identity = finish(mix(seed, facts, sizeof facts));
  trace::add_note("NCCL communicators were in use that were not seen when they were made: their identity is guessed");
  Communicator* c = plan_communicator(plan);
  made(c, handle, true);
  return c;
}

// Whether the plugin's communicator may be this one of the wrappers'.
bool may_be(const Communicator* c, const Plan& plan) {
  if (!c->alive || !c->wrapped || c->context.load(std::memory_order_relaxed)) return false;
  return (c->size == 0 || c->size == plan.size) && (c->rank < 0 || c->rank == plan.rank);
}

trace::CommunicatorEntry describe(const Communicator* c) {
  const std::lock_guard<std::mutex> lock(mutex);
  trace::CommunicatorEntry entry{};
  entry.identity = c->identity;
  entry.parent = c->parent;
  entry.created_ticks = c->created_ticks;
  entry.size = uint32_t(c->size);
  entry.rank = c->rank;
  entry.nodes = uint32_t(c->nodes);
  memcpy(entry.name, c->name, sizeof entry.name);
  if (!*entry.name) snprintf(entry.name, sizeof entry.name, "NCCL communicator of %d", c->size);
  return entry;
}

void enter_table(Communicator* c) {
  const trace::CommunicatorEntry entry = describe(c);
  int32_t* members = entry.size > 0 ? new (std::nothrow) int32_t[entry.size] : nullptr;
  for (int i = 0; members && i < int(entry.size); ++i) members[i] = world_rank_of(c, i);
  const uint16_t index = trace::add_communicator(entry, members, members ? entry.size : 0);
  delete[] members;
  c->entry.store(index, std::memory_order_release);
}

}  // namespace

uint64_t identity_of(const UniqueId* ids, int count) {
  return finish(mix(seed, ids, sizeof(UniqueId) * size_t(count > 0 ? count : 0)));
}

uint64_t identity_of_child(Communicator* parent, uint64_t distinction) {
  const uint64_t facts[3] = {parent->identity, parent->next_child.fetch_add(1), distinction};
  return finish(mix(seed, facts, sizeof facts));
}

uint64_t identity_here() {
  static std::atomic<uint64_t> count{0};
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  const uint64_t facts[3] = {uint64_t(getpid()), ticks(), count.fetch_add(1)};
  return finish(mix(mix(seed, host, sizeof host), facts, sizeof facts));
}

Communicator* plan_communicator(const Plan& plan) {
  const std::lock_guard<std::mutex> lock(mutex);
  return add(plan, true);
}

void made(Communicator* c, Comm handle, bool ready) {
  if (!handle) return;
  if (ready) ask_library(c, handle);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (Communicator* stale = search(handle); stale && stale != c) stale->alive = false;
    c->handle.store(handle, std::memory_order_release);
    generation.fetch_add(1, std::memory_order_release);
  }
  communicator_made();
  if (ready && recording() && c->size > 0) entry_of(c);
}

void gone(Communicator* c) {
  const std::lock_guard<std::mutex> lock(mutex);
  c->alive = false;
  generation.fetch_add(1, std::memory_order_release);
  const uint32_t entry = c->entry.load(std::memory_order_acquire);
  trace::CommunicatorEntry* written = entry < trace::none16 ? trace::communicator_entry(uint16_t(entry)) : nullptr;
  if (written) written->freed_ticks = ticks();
}

Communicator* communicator_of(Comm handle) {
  static thread_local Comm last = nullptr;
  static thread_local Communicator* found = nullptr;
  static thread_local uint32_t found_in = 0;
  const uint32_t now = generation.load(std::memory_order_acquire);
  if (handle == last && found && found_in == now) return found;
  Communicator* c;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    c = search(handle);
  }
  if (!c) c = take_up(handle);
  last = handle;
  found = c;
  found_in = now;
  return c;
}

Communicator* communicator_for_plugin(Communicator* mine, const Plan& plan, void* context) {
  const std::lock_guard<std::mutex> lock(mutex);
  Communicator* only = nullptr;
  int candidates = 0;
  for (Communicator* c = all; c; c = c->next) {
    if (!may_be(c, plan)) continue;
    ++candidates;
    only = c;
  }
  if (mine && may_be(mine, plan))
    only = mine;
  else if (candidates > 1)
    return nullptr;
  if (!only) only = add(plan, false);
  if (only->size == 0) only->size = plan.size;
  if (only->rank < 0) only->rank = plan.rank;
  if (only->device < 0) only->device = plan.device;
  only->nodes = plan.nodes;
  if (plan.name && *plan.name) snprintf(only->name, sizeof only->name, "%s", plan.name);
  only->context.store(context, std::memory_order_release);
  return only;
}

void bind_context(Communicator* c, void* context) {
  c->context.store(context, std::memory_order_release);
}

uint16_t entry_of(Communicator* c) {
  uint32_t entry = c->entry.load(std::memory_order_acquire);
  if (entry < trace::none16) return uint16_t(entry);
  Comm handle = c->handle.load(std::memory_order_acquire);
  if (handle && (c->size == 0 || c->device < 0)) ask_library(c, handle);
  if (c->size == 0) return trace::none16;  // NCCL is still making it
  if (entry == trace::none16 && c->entry.compare_exchange_strong(entry, entering)) enter_table(c);
  while ((entry = c->entry.load(std::memory_order_acquire)) == entering) cpu_relax();
  return entry < trace::none16 ? uint16_t(entry) : trace::none16;
}

int world_rank_of(const Communicator* c, int rank) {
  if (rank == c->rank) return world_rank();
  return c->size == world_size() && c->rank == world_rank() ? rank : -1;
}

uint8_t device_location(const Communicator* c) {
  const int device = c->device < 0 ? 0 : c->device > 12 ? 12 : c->device;
  return uint8_t((device + 1) | (device + 1) << 4);
}

}  // namespace stretto::nccl
