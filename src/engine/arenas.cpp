#include "engine/arenas.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "platform/futex.hpp"
#include "platform/reservation.hpp"

namespace stretto::engine {
namespace {

constexpr uint32_t undecided = 0, all_mapped = 1, not_mapped = 2;

}  // namespace

Arenas::~Arenas() {
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && mapped_[r].base != nullptr) munmap(mapped_[r].base, mapped_[r].bytes);
}

uint64_t Arenas::find() {
  auto function = reinterpret_cast<arena::Function>(dlsym(RTLD_DEFAULT, arena::function_name));
  own_.why = "libstretto_arena.so is not preloaded: start the program with stretto run --arena";
  if (function != nullptr) function(&own_);
  return own_.fd >= 0 ? own_.bytes : 0;
}

Status Arenas::map_all(platform::Rendezvous& rendezvous, const uint64_t* bytes, int rank, uint64_t deadline) {
  if (std::count(bytes, bytes + size_, 0u) > 0) return refused(own_.fd < 0 ? own_.why : "another rank has no arena");
  std::unique_ptr<int[]> fds(new (std::nothrow) int[size_t(size_)]);
  if (fds == nullptr) return no_memory("no memory for a list of descriptors", ENOMEM);
  std::fill(fds.get(), fds.get() + size_, -1);
  Status status = rendezvous.swap(own_.fd, size_, fds.get(), deadline);
  for (int r = 0; r < size_; ++r) {
    if (fds[r] < 0) continue;
    char* base;
    if (status.ok()) status = platform::map_sparse_object(fds[r], bytes[r], platform::Inherited::no, &base);
    if (status.ok()) mapped_[r] = {base, bytes[r]};
    close(fds[r]);
  }
  mapped_[rank] = {own_.base, own_.bytes};
  return status;
}

// The first to know says it for all.
Status Arenas::agree(ArenasHeader& header, Status own, uint64_t deadline) {
  uint32_t present = own.ok() ? header.mapped.fetch_add(1, std::memory_order_acq_rel) + 1 : 0;
  platform::futex_wake_all(&header.mapped);
  while (own.ok() && present < uint32_t(size_) && header.verdict.load(std::memory_order_acquire) == undecided) {
    if (now_ns() >= deadline) own = timed_out("a rank did not map the arenas in time");
    platform::futex_wait(&header.mapped, present, 10'000'000);
    present = header.mapped.load(std::memory_order_acquire);
  }
  uint32_t mine = own.ok() && present == uint32_t(size_) ? all_mapped : not_mapped, verdict = undecided;
  bool first = header.verdict.compare_exchange_strong(verdict, mine);
  if (first) verdict = mine;
  platform::futex_wake_all(&header.mapped);
  shared_ = verdict == all_mapped;
  if (first && !shared_) log(Level::warning, "no arena: %s; going on without", own.ok() ? "a rank could not map one" : own.what);
  return own;
}

void Arenas::share(platform::Rendezvous& rendezvous, ArenasHeader& header, const uint64_t* bytes, int size, int rank,
                   uint64_t deadline) {
  mapped_.reset(new (std::nothrow) transport::Mapped[size_t(size)]);
  size_ = mapped_ ? size : 0;
  rank_ = rank;
  Status status = mapped_ ? map_all(rendezvous, bytes, rank, deadline) : no_memory("no memory for a list of arenas", ENOMEM);
  size_ = size;
  status = agree(header, status, deadline);
  if (mapped_ == nullptr) size_ = 0;
}

}  // namespace stretto::engine
