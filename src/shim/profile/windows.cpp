#include "shim/profile/windows.hpp"

#include <mutex>
#include <new>

#include "shim/profile/words.hpp"

namespace stretto::shim::profile {
namespace {

// A map from handles for what is made and freed rarely. Chained.
template <class Value>
class HandleMap {
 public:
  void insert(uintptr_t handle, const Value& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Node* known = find(handle)) return void(known->value = value);
    Node*& bucket = bucket_of(handle);
    if (Node* node = new (std::nothrow) Node{bucket, handle, value}) bucket = node;
  }
  bool get(uintptr_t handle, Value* value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Node* node = find(handle);
    if (node) *value = node->value;
    return node != nullptr;
  }
  bool take(uintptr_t handle, Value* value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Node** link = &bucket_of(handle); *link; link = &(*link)->next) {
      Node* node = *link;
      if (node->handle != handle) continue;
      *value = node->value;
      *link = node->next;
      delete node;
      return true;
    }
    return false;
  }

 private:
  struct Node {
    Node* next;
    uintptr_t handle;
    Value value;
  };
  static constexpr size_t buckets = 512;
  Node*& bucket_of(uintptr_t handle) { return table_[(uint64_t(handle) * 0x9e3779b97f4a7c15u >> 40u) % buckets]; }
  Node* find(uintptr_t handle) {
    Node* node = bucket_of(handle);
    while (node && node->handle != handle) node = node->next;
    return node;
  }
  std::mutex mutex_;
  Node* table_[buckets] = {};
};

HandleMap<Window> windows;
HandleMap<Matched> messages;
std::atomic<uint64_t> generation{1};  // grows whenever a window is freed

struct Remembered {
  uintptr_t key = 0;
  uint64_t generation = 0;
  Window window;
};
__attribute__((tls_model("initial-exec"))) thread_local Remembered remembered;

Window ask(MPI_Win win) {
  Window window;
  MPI_Group group;
  if (mpi().Win_get_group(win, &group) == MPI_SUCCESS) window.members = members_of(group);
  return window;
}

}  // namespace

void window_made(MPI_Win win, const Window& window) {
  windows.insert(key_of(win), window);
}

void window_freed(uintptr_t handle) {
  Window window;
  generation.fetch_add(1, std::memory_order_acq_rel);
  windows.take(handle, &window);
}

Window window_of(MPI_Win win) {
  static const uintptr_t null = predefined_value("MPI_WIN_NULL");
  const uintptr_t key = key_of(win);
  const uint64_t now = generation.load(std::memory_order_acquire);
  if (remembered.key == key && remembered.generation == now) return remembered.window;
  if (key == 0 || key == null) return {};
  Window window;
  if (!windows.get(key, &window)) {
    window = ask(win);
    windows.insert(key, window);
  }
  remembered = {key, now, window};
  return window;
}

void message_matched(uintptr_t handle, const Matched& matched) {
  messages.insert(handle, matched);
}

Matched message_taken(uintptr_t handle) {
  Matched matched;
  messages.take(handle, &matched);
  return matched;
}

}  // namespace stretto::shim::profile
