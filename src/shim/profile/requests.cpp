#include "shim/profile/requests.hpp"

#include <stdlib.h>

#include <mutex>

#include "base/clock.hpp"
#include "shim/process.hpp"

namespace stretto::shim::profile {

constinit bool several_threads = true;

namespace {

struct Node {
  Node* next;
  uintptr_t handle;
  Tracked request;
};

constexpr size_t shard_count = 64, buckets_per_shard = 256;
constexpr size_t nodes_per_block = 64, most_per_shard = 1 << 18;
constexpr size_t most_waiting = 64;

class SpinLock {
 public:
  void lock() {
    if (!several_threads) return;
    while (taken_.test_and_set(std::memory_order_acquire)) cpu_relax();
  }
  void unlock() {
    if (several_threads) taken_.clear(std::memory_order_release);
  }

 private:
  std::atomic_flag taken_;
};

struct alignas(64) Shard {
  SpinLock lock;
  Node* free = nullptr;
  size_t count = 0;
  Node* buckets[buckets_per_shard] = {};
};
Shard shards[shard_count];
std::atomic<uint64_t> numbers{0};
uintptr_t shared_empty = 0;

uint64_t hash_of(uintptr_t handle) {
  return (uint64_t(handle) * 0x9e3779b97f4a7c15u) >> 40u;
}
Shard& shard_of(uint64_t hash) {
  return shards[hash % shard_count];
}
Node** bucket_of(Shard& shard, uint64_t hash) {
  return &shard.buckets[hash / shard_count % buckets_per_shard];
}

// Handles that MPI gives to many requests, those that were complete at once.
bool is_shared(uintptr_t handle) {
#if defined(STRETTO_MPI_OMPI)
  return handle == shared_empty;
#else
  return (uint32_t(handle) >> 30u) == 1;  // MPICH: a builtin object
#endif
}

void count_untracked() {
  if (trace::TraceHeader* header = trace::trace_header())
    std::atomic_ref<uint64_t>(header->untracked_requests).fetch_add(1, std::memory_order_relaxed);
}

Node* new_node(Shard& shard) {
  if (!shard.free && shard.count < most_per_shard) {
    auto* block = static_cast<Node*>(calloc(nodes_per_block, sizeof(Node)));
    for (size_t i = 0; block && i < nodes_per_block; ++i) {
      block[i].next = shard.free;
      shard.free = &block[i];
    }
    shard.count += nodes_per_block;
  }
  Node* node = shard.free;
  if (node) shard.free = node->next;
  return node;
}

void release(Tracked& request) {
  free(request.later);
  if (request.communicator) let_go(request.communicator);
}

// Takes *link out of its chain.
void drop(Shard& shard, Node** link) {
  Node* node = *link;
  *link = node->next;
  node->next = shard.free;
  shard.free = node;
}

// Those of one handle stand newest first. Of a handle of its own the newest that is not too new is meant; of a shared handle the
// one in the same variable, else the oldest.
Node** find(Shard& shard, uint64_t hash, uintptr_t handle, const void* variable, uint64_t newest) {
  Node** found = nullptr;
  const bool shared = is_shared(handle);
  for (Node** link = bucket_of(shard, hash); *link; link = &(*link)->next) {
    const Node& node = **link;
    if (node.handle != handle || node.request.number > newest) continue;
    if (!shared || (variable && node.request.variable == variable)) return link;
    found = link;
  }
  return found;
}

// Requests of this handle, of its own, that are older than another one have been completed. Where there is only one thread that
// happened where it could not be seen. Else another thread may be about to look for them, each thread for one at most.
void drop_older(Shard& shard, Node** link, uintptr_t handle) {
  for (size_t seen = 0; *link;) {
    if ((*link)->handle != handle || ++seen <= (several_threads ? most_waiting : 0)) {
      link = &(*link)->next;
      continue;
    }
    if (!(*link)->request.persistent) count_untracked();
    release((*link)->request);
    drop(shard, link);
  }
}

}  // namespace

uint64_t newest_number() {
  return numbers.load(std::memory_order_relaxed);
}

uint64_t draw_request_number() {
  if (several_threads) return numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t number = numbers.load(std::memory_order_relaxed) + 1;
  numbers.store(number, std::memory_order_relaxed);
  return number;
}

void prepare_requests() {
  int provided = MPI_THREAD_MULTIPLE;
  mpi().Query_thread(&provided);
  several_threads = provided == MPI_THREAD_MULTIPLE;
  shared_empty = reinterpret_cast<uintptr_t>(library().find_data("ompi_request_empty"));
}

Tracked* begin_tracking(uintptr_t handle) {
  const uint64_t hash = hash_of(handle);
  Shard& shard = shard_of(hash);
  shard.lock.lock();
  Node** bucket = bucket_of(shard, hash);
  if (*bucket && !is_shared(handle)) drop_older(shard, bucket, handle);
  Node* node = new_node(shard);
  if (!node) {
    shard.lock.unlock();
    count_untracked();
    return nullptr;
  }
  *node = {*bucket, handle, {}};
  *bucket = node;
  return &node->request;
}

void end_tracking(uintptr_t handle) {
  shard_of(hash_of(handle)).lock.unlock();
}

bool look_up(uintptr_t handle, const void* variable, uint64_t newest, Tracked* found) {
  const uint64_t hash = hash_of(handle);
  Shard& shard = shard_of(hash);
  const std::lock_guard<SpinLock> lock(shard.lock);
  Node** link = find(shard, hash, handle, variable, newest);
  if (link) *found = (*link)->request;
  return link != nullptr;
}

bool complete(uintptr_t handle, const void* variable, uint64_t newest, Tracked* found) {
  const uint64_t hash = hash_of(handle);
  Shard& shard = shard_of(hash);
  const std::lock_guard<SpinLock> lock(shard.lock);
  Node** link = find(shard, hash, handle, variable, newest);
  if (!link) return false;
  *found = (*link)->request;
  if ((*link)->request.persistent) {
    (*link)->request.number = 0;
    (*link)->request.flags &= uint8_t(~trace::cancelled);
    return found->number != 0;
  }
  drop(shard, link);
  if (!is_shared(handle)) drop_older(shard, link, handle);
  return true;
}

bool forget(uintptr_t handle, const void* variable, Tracked* found) {
  const uint64_t hash = hash_of(handle);
  Shard& shard = shard_of(hash);
  const std::lock_guard<SpinLock> lock(shard.lock);
  Node** link = find(shard, hash, handle, variable, UINT64_MAX);
  if (!link) return false;
  *found = (*link)->request;
  drop(shard, link);
  if (found->number != 0 && found->receives) count_untracked();
  release(*found);
  return true;
}

bool set_number(uintptr_t handle, uint64_t number, Tracked* found) {
  const uint64_t hash = hash_of(handle);
  Shard& shard = shard_of(hash);
  const std::lock_guard<SpinLock> lock(shard.lock);
  Node** link = find(shard, hash, handle, nullptr, UINT64_MAX);
  if (!link) return false;
  (*link)->request.number = number;
  *found = (*link)->request;
  return true;
}

void end_requests() {
  for (Shard& shard : shards)
    for (Node* bucket : shard.buckets)
      for (const Node* node = bucket; node; node = node->next)
        if (!node->request.persistent) count_untracked();
}

}  // namespace stretto::shim::profile
