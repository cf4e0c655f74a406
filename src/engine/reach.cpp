#include "engine/reach.hpp"

#include <new>

#include "base/log.hpp"
#include "transport/arena/arena.hpp"
#include "transport/cma/cma.hpp"
#include "transport/descent/descent.hpp"
#include "transport/fault/fault.hpp"
#include "transport/xpmem/xpmem.hpp"

namespace stretto::engine {
namespace {

using transport::Transport;

std::unique_ptr<Transport> by_arena(const Job& job, const int* members, int size, int rank) {
  if (!job.arenas().shared()) return nullptr;
  std::unique_ptr<transport::Mapped[]> mapped(new (std::nothrow) transport::Mapped[size_t(size)]);
  if (mapped == nullptr) return nullptr;
  for (int r = 0; r < size; ++r) mapped[r] = job.arenas()[members[r]];
  return transport::make_arena(mapped.get(), size, rank);
}

std::unique_ptr<Transport> by_xpmem(Job& job, const int* members, int size, int rank) {
  transport::XpmemPeers* peers = job.xpmem();
  for (int r = 0; r < size; ++r)
    if (peers == nullptr || (r != rank && !peers->open(members[r], job.member(members[r]).xpmem_segment))) return nullptr;
  return transport::make_xpmem(*peers, members, size, rank);
}

std::unique_ptr<Transport> by_cma(Job& job, const int* members, int size, int rank) {
  std::unique_ptr<int32_t[]> pids(new (std::nothrow) int32_t[size_t(size)]);
  if (pids == nullptr) return nullptr;
  for (int r = 0; r < size; ++r) {
    const Member& member = job.member(members[r]);
    pids[r] = member.process.pid;
    if (r == rank) continue;
    Status probed = transport::probe_cma(pids[r], member.probe_address, member.probe_value);
    if (probed.ok()) continue;
    if (job.first_to_say(Notice::cma_refused))
      log(Level::warning, "cross-memory attach is refused here (%s): large messages go through shared memory", probed.what);
    return nullptr;
  }
  return transport::make_cma(pids.get(), size, rank);
}

}  // namespace

std::unique_ptr<Transport> reach_peers(Job& job, const int* members, int size, int rank, const char* faults) {
  std::unique_ptr<Transport> steps[transport::most_steps] = {
      by_arena(job, members, size, rank), by_xpmem(job, members, size, rank), by_cma(job, members, size, rank)};
  std::unique_ptr<Transport> all = transport::make_descent(std::move(steps));
  transport::Faults wanted;
  if (*faults && transport::parse_faults(faults, &wanted).ok()) all = transport::make_fault(std::move(all), wanted);
  return all;
}

}  // namespace stretto::engine
