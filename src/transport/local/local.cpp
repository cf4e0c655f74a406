#include "transport/local/local.hpp"

#include <errno.h>

#include <new>

namespace stretto::transport {
namespace {

class Local final : public Transport {
 public:
  const char* name() const override { return "local"; }
  size_t cell_bytes() const override { return SIZE_MAX; }
  uint32_t cells() const override { return UINT32_MAX; }
  bool maps() const override { return true; }
  Reach reach() const override { return Reach::mapping(Mechanism::address); }
  Window window(const void* buffer) const override { return {reinterpret_cast<uintptr_t>(buffer)}; }
  Status put(Cell, size_t, const void*, size_t) override { return Status::good(); }
  void* place(Cell, size_t, size_t) override { return nullptr; }

  Status get(int, Window window, Cell, size_t at, size_t bytes, void* scratch, const void** data) override {
    *data = scratch;
    if (bytes == 0) return Status::good();
    if (window.base == 0) return refused("the peer has published no buffer", EFAULT);
    *data = reinterpret_cast<const char*>(uintptr_t(window.base)) + at;
    return Status::good();
  }

  void* place_at(int, Window window, size_t at, size_t) override {
    return window.base ? reinterpret_cast<char*>(uintptr_t(window.base)) + at : nullptr;
  }
};

}  // namespace

std::unique_ptr<Transport> make_local() {
  return std::unique_ptr<Transport>(new (std::nothrow) Local);
}

}  // namespace stretto::transport
