// The job on this node: the ranks that run Stretto, how they found each other, and what they share.
//
// Joining happens once, at the end of MPI_Init, without MPI: a rank that does not run Stretto could not answer. Local rank 0
// makes the shared memory and hands it to the others; each enters itself in the register; when all of the node's ranks stand
// there with the same settings, the verdict "joined" is written, once, by whoever sees it first. The verdict holds for all and
// for ever, so every rank knows of every other whether it takes part.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "collective/waiter.hpp"
#include "engine/arenas.hpp"
#include "engine/pool.hpp"
#include "engine/segment.hpp"
#include "engine/sharing.hpp"
#include "platform/cpus.hpp"
#include "platform/process.hpp"
#include "select/rules.hpp"
#include "transport/xpmem/xpmem.hpp"

namespace stretto::engine {

// One rank of this node, in shared memory; written by itself before it counts as registered.
struct Member {
  std::atomic<uint32_t> registered;
  int32_t world_rank;
  int32_t world_size;
  platform::ProcessId process;
  platform::CpuSet cpus;
  int32_t domain;  // where it stands: equal on ranks that are near one another; -1: everywhere
  platform::CpuQuota cpu_quota;
  uint64_t scheduling_group;
  // Of the ranks for whom this is the first of those that share CPUs.
  std::atomic<int32_t> early_sleepers;
  collective::Contention contention;
  collective::Contention contention_of_all;  // of the first one: of ranks that are not too many for their own CPUs
  collective::Work work;
  uint64_t fingerprint;    // of its settings, rules and build
  uint64_t probe_address;  // of a word in its private memory, for a trial read ...
  uint64_t probe_value;    // ... and what stands there
  uint64_t arena_bytes;    // size of its arena; 0: it has none
  int64_t xpmem_segment;   // its address space for XPMEM; 0: it has none
};

// Whether the ranks on all nodes take part.
enum class Nodes : uint32_t { open, one, joined, not_asked, unreachable, missing, differ, unknown };

enum class Verdict : uint32_t { open, joined, ranks_missing, settings_differ, worlds_differ };

// What ranks may find out alike, and one of the node's tells the user; a bit each.
enum class Notice : uint32_t { cma_refused = 1, pool_full = 2 };

struct JobHeader {
  uint64_t magic;
  uint64_t bytes;
  uint32_t local_size;
  std::atomic<uint32_t> registered;
  std::atomic<uint32_t> verdict;
  std::atomic<uint32_t> nodes;  // a Nodes, written by local rank 0
  std::atomic<uint32_t> said;   // Notices that the user has been told
  ArenasHeader arenas;
  PoolHeader pool;
  Member members[1];  // local_size of them
};

// Whether these ranks, each with its allowed CPUs, must share one: all together, or those with equal sets.
Sharing find_sharing(const Member* members, int count, int self);

// Who this process is among the ranks of its job, as MPI and the launcher tell.
struct Place {
  int world_rank = 0;
  int world_size = 1;
  int local_rank = -1;
  int local_size = -1;
  const char* job = "";  // equal on all ranks of this launch, different from any other's
};

class Job {
 public:
  // Never hangs: gives up after settings.join_timeout_ms. On failure nothing is shared and *this is not joined.
  Status join(const Place& place, const Settings& settings, const select::Rules& rules);

  bool joined() const { return joined_; }
  // Whether this rank is the one of its node that says why it has not joined, as far as that can be arranged.
  bool speaks() const { return speaks_; }
  // True for the first rank of the node that asks: it is to tell the user.
  bool first_to_say(Notice notice) {
    const auto bit = uint32_t(notice);
    return (header_->said.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  void say_pool_is_full();
  bool crowded() const { return sharing_.crowded; }  // ranks outnumber the CPUs they may use
  const Sharing& sharing() const { return sharing_; }
  // How a rank waits where it shares CPUs, or does not.
  collective::WaitPolicy wait_policy() const;
  int local_size() const { return place_.local_size; }
  int domains() const { return domains_; }  // over which its ranks are spread

  // Whether every rank of the world takes part, on all nodes, with the same settings, rules and build; why not.
  Nodes nodes() const { return nodes_; }
  // For a host that knows by itself.
  void set_nodes(Nodes nodes) { nodes_ = nodes; }
  bool speaks_for_nodes() const { return speaks_for_nodes_; }  // one rank does, as far as can be arranged
  uint64_t fingerprint() const { return fingerprint_; }
  // A number that names this node among those of the world.
  int node_name() const;

  // Index of the member with this world rank; -1: not on this node.
  int member_of(int world_rank) const;
  const Member& member(int index) const { return header_->members[index]; }
  bool alive(int index) const { return platform::process_alive(header_->members[index].process); }

  const Arenas& arenas() const { return arenas_; }
  transport::XpmemPeers* xpmem() { return xpmem_.get(); }  // null where this process has no XPMEM

  Segment& segment() { return segment_; }
  Pool& pool() { return pool_; }

 private:
  Status open_segment(platform::Rendezvous& rendezvous, uint64_t deadline);
  Status make_segment();
  Status map_header();
  void enter(uint64_t fingerprint);
  Status agree(uint64_t deadline);
  void share_arenas(platform::Rendezvous& rendezvous);
  void watch_crowd();
  Verdict judge() const;
  void meet_nodes(bool joined);
  Nodes ask_nodes(bool joined);

  Place place_;
  Settings settings_;
  Segment segment_;
  Pool pool_;
  Arenas arenas_;
  std::unique_ptr<transport::XpmemPeers> xpmem_;
  JobHeader* header_ = nullptr;
  bool joined_ = false;
  bool speaks_ = false;
  Sharing sharing_;
  collective::Crowd crowd_;
  Nodes nodes_ = Nodes::one;
  bool speaks_for_nodes_ = false;
  uint64_t fingerprint_ = 0;
  int domains_ = 1;
};

// How many different domains they stand in.
int domains_of(const Member* members, int count);

}  // namespace stretto::engine
