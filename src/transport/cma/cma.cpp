#include "transport/cma/cma.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "platform/process.hpp"

namespace stretto::transport {
namespace {

class Cma final : public Transport {
 public:
  Cma(std::unique_ptr<int32_t[]> pids, int size, int rank) : pids_(std::move(pids)), size_(size), rank_(rank) {}

  const char* name() const override { return "cma"; }
  size_t cell_bytes() const override { return SIZE_MAX; }
  uint32_t cells() const override { return UINT32_MAX; }
  bool maps() const override { return false; }
  Reach reach() const override { return Reach::copying(Mechanism::address); }
  Window window(const void* buffer) const override { return {reinterpret_cast<uintptr_t>(buffer)}; }
  Status put(Cell, size_t, const void*, size_t) override { return Status::good(); }
  void* place(Cell, size_t, size_t) override { return nullptr; }

  Status get(int peer, Window window, Cell, size_t at, size_t bytes, void* scratch, const void** data) override {
    *data = scratch;
    if (bytes == 0) return Status::good();
    STRETTO_TRY(check(peer, window));
    uint64_t address = untagged(window.base + at);
    if (peer != rank_) return platform::read_process_memory(pids_[peer], address, scratch, bytes);
    memcpy(scratch, reinterpret_cast<const void*>(uintptr_t(address)), bytes);
    return Status::good();
  }

  Status give(int peer, Window window, size_t at, const void* data, size_t bytes) override {
    if (bytes == 0) return Status::good();
    STRETTO_TRY(check(peer, window));
    uint64_t address = untagged(window.base + at);
    if (peer != rank_) return platform::write_process_memory(pids_[peer], address, data, bytes);
    memcpy(reinterpret_cast<void*>(uintptr_t(address)), data, bytes);
    return Status::good();
  }

 private:
  Status check(int peer, Window window) const {
    if (peer < 0 || peer >= size_) return invalid("no such peer", peer);
    if (window.base == 0) return refused("the peer has published no buffer", EFAULT);
    if (mechanism_of(window) != Mechanism::address) return refused("the window is none of addresses", EINVAL);
    return Status::good();
  }

  std::unique_ptr<int32_t[]> pids_;
  int size_;
  int rank_;
};

}  // namespace

std::unique_ptr<Transport> make_cma(const int32_t* pids, int size, int rank) {
  if (size < 1) return nullptr;
  std::unique_ptr<int32_t[]> copy(new (std::nothrow) int32_t[size_t(size)]);
  if (copy == nullptr) return nullptr;
  std::copy(pids, pids + size, copy.get());
  return std::unique_ptr<Transport>(new (std::nothrow) Cma(std::move(copy), size, rank));
}

Status probe_cma(int32_t pid, uint64_t address, uint64_t expected) {
  uint64_t seen = 0;
  STRETTO_TRY(platform::read_process_memory(pid, address, &seen, sizeof seen));
  // Ranks in containers of their own may know each other by numbers that mean other processes here.
  return seen == expected ? Status::good() : refused("the peer's process number means another process here", ESRCH);
}

}  // namespace stretto::transport
