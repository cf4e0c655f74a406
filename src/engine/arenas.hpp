// The arenas of the job's ranks on this node: each process maps all of them at the join, and all agree whether that worked.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "arena/interface.hpp"
#include "base/status.hpp"
#include "platform/rendezvous.hpp"
#include "transport/arena/arena.hpp"

namespace stretto::engine {

// In the job's shared memory.
struct ArenasHeader {
  std::atomic<uint32_t> mapped;   // ranks that have mapped all arenas
  std::atomic<uint32_t> verdict;  // 0 open, 1 all have, 2 one has not
};

class Arenas {
 public:
  ~Arenas();

  // This process's arena, where its library is preloaded. Returns its size, 0 where there is none, and why() says why not.
  uint64_t find();
  const char* why() const { return own_.why; }

  // Collective over the node's ranks: sends the own descriptor to all, maps theirs, and agrees. bytes[r]: size of rank r's arena,
  // as registered. `rendezvous` is open. Afterwards shared() is the same on all ranks.
  void share(platform::Rendezvous& rendezvous, ArenasHeader& header, const uint64_t* bytes, int size, int rank,
             uint64_t deadline);

  bool shared() const { return shared_; }
  transport::Mapped operator[](int member) const { return mapped_[member]; }

 private:
  Status map_all(platform::Rendezvous& rendezvous, const uint64_t* bytes, int rank, uint64_t deadline);
  Status agree(ArenasHeader& header, Status own, uint64_t deadline);

  arena::View own_;
  int size_ = 0;
  int rank_ = 0;
  bool shared_ = false;
  std::unique_ptr<transport::Mapped[]> mapped_;
};

}  // namespace stretto::engine
