#include "transport/descent/descent.hpp"

#include <errno.h>

#include <new>
#include <utility>

namespace stretto::transport {
namespace {

class Descent final : public Transport {
 public:
  explicit Descent(std::unique_ptr<Transport> (&steps)[most_steps]) {
    for (auto& step : steps)
      if (step != nullptr) steps_[count_++] = std::move(step);
  }

  const char* name() const override { return "descent"; }
  size_t cell_bytes() const override { return SIZE_MAX; }
  uint32_t cells() const override { return UINT32_MAX; }
  bool maps() const override { return steps_[0]->maps(); }
  Status put(Cell, size_t, const void*, size_t) override { return Status::good(); }
  void* place(Cell, size_t, size_t) override { return nullptr; }

  Reach reach() const override {
    Reach all;
    for (int i = 0; i < count_; ++i) all = all | steps_[i]->reach();
    return all;
  }

  Window window(const void* buffer) const override {
    Window found;
    for (int i = 0; i < count_ && found.base == 0; ++i) found = steps_[i]->window(buffer);
    return found;
  }

  Status get(int peer, Window window, Cell cell, size_t at, size_t bytes, void* scratch, const void** data) override {
    *data = scratch;
    if (bytes == 0) return Status::good();
    Transport* step = step_of(window);
    if (step == nullptr) return refused("no way to the peer's buffer", EFAULT);
    return step->get(peer, window, cell, at, bytes, scratch, data);
  }

  void* place_at(int peer, Window window, size_t at, size_t bytes) override {
    Transport* step = step_of(window);
    return step == nullptr ? nullptr : step->place_at(peer, window, at, bytes);
  }

  Status give(int peer, Window window, size_t at, const void* data, size_t bytes) override {
    if (bytes == 0) return Status::good();
    Transport* step = step_of(window);
    return step == nullptr ? refused("no way to the peer's buffer", EFAULT) : step->give(peer, window, at, data, bytes);
  }

 private:
  Transport* step_of(Window window) const {
    for (int i = 0; i < count_; ++i)
      if (steps_[i]->reach().reads(window)) return steps_[i].get();
    return nullptr;
  }

  std::unique_ptr<Transport> steps_[most_steps];
  int count_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_descent(std::unique_ptr<Transport> (&&steps)[most_steps]) {
  bool any = false;
  for (auto& step : steps) any = any || step != nullptr;
  return any ? std::unique_ptr<Transport>(new (std::nothrow) Descent(steps)) : nullptr;
}

}  // namespace stretto::transport
