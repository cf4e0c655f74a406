// A direct transport that counts what passes through it.
#pragma once
#include <memory>
#include <utility>

#include "transport/transport.hpp"

namespace stretto::collective {

class Counting final : public transport::Transport {
 public:
  struct Bytes {
    size_t taken = 0, given = 0;
    size_t all() const { return taken + given; }
  };
  Counting(std::unique_ptr<Transport> inner, Bytes* bytes) : inner_(std::move(inner)), bytes_(bytes) {}

  const char* name() const override { return inner_->name(); }
  size_t cell_bytes() const override { return inner_->cell_bytes(); }
  uint32_t cells() const override { return inner_->cells(); }
  bool maps() const override { return inner_->maps(); }
  transport::Reach reach() const override { return inner_->reach(); }
  transport::Window window(const void* buffer) const override { return inner_->window(buffer); }
  Status put(transport::Cell cell, size_t at, const void* data, size_t n) override { return inner_->put(cell, at, data, n); }
  void* place(transport::Cell cell, size_t at, size_t n) override { return inner_->place(cell, at, n); }
  Status get(int peer, transport::Window window, transport::Cell cell, size_t at, size_t n, void* scratch,
             const void** data) override {
    bytes_->taken += n;
    return inner_->get(peer, window, cell, at, n, scratch, data);
  }
  Status give(int peer, transport::Window window, size_t at, const void* data, size_t n) override {
    bytes_->given += n;
    return inner_->give(peer, window, at, data, n);
  }

 private:
  std::unique_ptr<Transport> inner_;
  Bytes* bytes_;
};

}  // namespace stretto::collective
