#include "transport/fault/fault.hpp"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <new>
#include <utility>

namespace stretto::transport {
namespace {

// The value a refused get leaves in scratch, so that whoever uses it all the same is found out.
constexpr int garbage = 0xA5;

void nap(uint64_t ns) {
  if (ns == 0) return;
  timespec left = {time_t(ns / 1'000'000'000), long(ns % 1'000'000'000)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

class Fault final : public Transport {
 public:
  Fault(std::unique_ptr<Transport> inner, const Faults& faults) : inner_(std::move(inner)), faults_(faults) {}

  const char* name() const override { return inner_->name(); }
  size_t cell_bytes() const override { return inner_->cell_bytes(); }
  uint32_t cells() const override { return inner_->cells(); }
  bool maps() const override { return inner_->maps(); }
  Reach reach() const override { return inner_->reach().unmapped(); }  // all passes through get and give
  Window window(const void* buffer) const override { return inner_->window(buffer); }
  void* place(Cell cell, size_t at, size_t bytes) override { return inner_->place(cell, at, bytes); }

  Status put(Cell cell, size_t at, const void* data, size_t bytes) override {
    nap(faults_.delay_ns);
    return inner_->put(cell, at, data, bytes);
  }

  Status get(int peer, Window window, Cell cell, size_t at, size_t bytes, void* scratch, const void** data) override {
    if (misbehaves()) {
      if (scratch != nullptr) memset(scratch, garbage, bytes);
      *data = scratch;
      return asked_for();
    }
    return count(inner_->get(peer, window, cell, at, bytes, scratch, data));
  }

  Status give(int peer, Window window, size_t at, const void* data, size_t bytes) override {
    return misbehaves() ? asked_for() : count(inner_->give(peer, window, at, data, bytes));
  }

 private:
  bool misbehaves() {
    nap(faults_.delay_ns);
    ++asked_;
    bool nth = faults_.refuse_every != 0 && asked_ % faults_.refuse_every == 0;
    return nth || succeeded_ >= faults_.cut_after;
  }
  Status count(Status status) {
    if (status.ok()) ++succeeded_;
    return status;
  }
  static Status asked_for() { return refused("a fault was asked for (STRETTO_FAULT)", EIO); }

  std::unique_ptr<Transport> inner_;
  Faults faults_;
  uint64_t asked_ = 0;
  uint64_t succeeded_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_fault(std::unique_ptr<Transport> inner, const Faults& faults) {
  if (inner == nullptr) return nullptr;
  return std::unique_ptr<Transport>(new (std::nothrow) Fault(std::move(inner), faults));
}

}  // namespace stretto::transport
