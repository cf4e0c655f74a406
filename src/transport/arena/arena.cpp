#include "transport/arena/arena.hpp"

#include <errno.h>

#include <algorithm>
#include <new>

namespace stretto::transport {
namespace {

class Arena final : public Transport {
 public:
  Arena(std::unique_ptr<Mapped[]> arenas, int size, int rank) : arenas_(std::move(arenas)), size_(size), own_(arenas_[rank]) {}

  const char* name() const override { return "arena"; }
  size_t cell_bytes() const override { return SIZE_MAX; }
  uint32_t cells() const override { return UINT32_MAX; }
  bool maps() const override { return true; }
  Reach reach() const override { return Reach::mapping(Mechanism::arena); }
  Status put(Cell, size_t, const void*, size_t) override { return Status::good(); }
  void* place(Cell, size_t, size_t) override { return nullptr; }

  Window window(const void* buffer) const override {
    uint64_t offset = reinterpret_cast<uintptr_t>(buffer) - reinterpret_cast<uintptr_t>(own_.base);
    return own_.base != nullptr && offset < own_.bytes ? tagged(Mechanism::arena, offset) : Window{};
  }

  Status get(int peer, Window window, Cell, size_t at, size_t bytes, void* scratch, const void** data) override {
    *data = scratch;
    if (bytes == 0) return Status::good();
    const void* there = place_at(peer, window, at, bytes);
    if (there == nullptr) return refused("the peer's buffer is in no arena that is mapped here", EFAULT);
    *data = there;
    return Status::good();
  }

  void* place_at(int peer, Window window, size_t at, size_t bytes) override {
    if (peer < 0 || peer >= size_ || mechanism_of(window) != Mechanism::arena) return nullptr;
    const Mapped& theirs = arenas_[peer];
    uint64_t begin = untagged(window.base + at);
    return begin < theirs.bytes && bytes <= theirs.bytes - begin ? theirs.base + begin : nullptr;
  }

 private:
  std::unique_ptr<Mapped[]> arenas_;
  const int size_;
  const Mapped own_;
};

}  // namespace

std::unique_ptr<Transport> make_arena(const Mapped* arenas, int size, int rank) {
  if (size < 1 || arenas == nullptr) return nullptr;
  std::unique_ptr<Mapped[]> copy(new (std::nothrow) Mapped[size_t(size)]);
  if (copy == nullptr) return nullptr;
  std::copy(arenas, arenas + size, copy.get());
  return std::unique_ptr<Transport>(new (std::nothrow) Arena(std::move(copy), size, rank));
}

}  // namespace stretto::transport
