// Transports that pass everything on to another, but for what a test changes; one that counts, and one that reads late.
#pragma once
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "transport/transport.hpp"

namespace stretto::collective {

class Wrapped : public transport::Transport {
 public:
  explicit Wrapped(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

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
    return inner_->get(peer, window, cell, at, n, scratch, data);
  }
  Status give(int peer, transport::Window window, size_t at, const void* data, size_t n) override {
    return inner_->give(peer, window, at, data, n);
  }

 protected:
  Transport& inner() { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;
};

// Counts what is copied through it.
class Counting final : public Wrapped {
 public:
  struct Bytes {
    size_t taken = 0, given = 0;
    size_t all() const { return taken + given; }
  };
  Counting(std::unique_ptr<Transport> inner, Bytes* bytes) : Wrapped(std::move(inner)), bytes_(bytes) {}

  Status get(int peer, transport::Window window, transport::Cell cell, size_t at, size_t n, void* scratch,
             const void** data) override {
    bytes_->taken += n;
    return Wrapped::get(peer, window, cell, at, n, scratch, data);
  }
  Status give(int peer, transport::Window window, size_t at, const void* data, size_t n) override {
    bytes_->given += n;
    return Wrapped::give(peer, window, at, data, n);
  }

 private:
  Bytes* bytes_;
};

// What is read from a cell is read some time after it was asked for: whoever has said before that it was read is found out.
class ReadingLate final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  Status get(int peer, transport::Window window, transport::Cell cell, size_t at, size_t n, void* scratch,
             const void** data) override {
    idle();
    return Wrapped::get(peer, window, cell, at, n, scratch, data);
  }
  void* place_in(int peer, transport::Cell cell, size_t at, size_t n) override {
    idle();
    return inner().place_in(peer, cell, at, n);
  }

 private:
  static void idle() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }
};

}  // namespace stretto::collective
