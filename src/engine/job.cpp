#include "engine/job.hpp"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "platform/build_id.hpp"
#include "platform/futex.hpp"
#include "platform/rendezvous.hpp"
#include "platform/scheduling.hpp"
#include "platform/shared_memory.hpp"
#include "platform/topology.hpp"
#include "stretto/stretto.h"

namespace stretto::engine {
namespace {

constexpr uint64_t magic = 0x53545245'54544f01;
constexpr uint64_t default_cap = uint64_t(1) << 30;

// Read by peers in trial: private memory of this process.
uint64_t probe_word = 0;

size_t header_bytes(int local_size) {
  return sizeof(JobHeader) + size_t(local_size - 1) * sizeof(Member);
}

uint64_t pool_cap(const Settings& settings) {
  if (settings.memory_mib != 0) return settings.memory_mib << 20;
  uint64_t eighth = platform::physical_memory() / 8;
  return eighth < default_cap ? eighth : default_cap;
}

// What must be the same on all ranks: settings, rules, and the build, as ranks of two that differ by a line may not get on.
uint64_t common_fingerprint(const Settings& settings, const select::Rules& rules) {
  uint64_t hash = fingerprint(settings) * 31 + rules.fingerprint;
  for (const char* c = STRETTO_VERSION; *c; ++c) hash = hash * 31 + uint8_t(*c);
  return hash * 31 + platform::build_id();
}

// A rank that may run in several domains is in none of them: such ranks count as one domain.
int32_t own_domain(const Settings& settings, const platform::CpuSet& cpus, int local_rank) {
  platform::Location here;
  if (strcmp(settings.domain, "none") == 0) return platform::no_place;
  Status status = *settings.topology ? platform::load_location(settings.topology, cpus, local_rank, &here) : Status::good();
  if (!status.ok())
    log(local_rank == 0 ? Level::warning : Level::info, "topology file %.100s%s: %s; going by the system's", settings.topology,
        InLine(status).text, status.what);
  if (!status.ok() || !*settings.topology) here = platform::locate("/sys/devices/system", cpus);
  if (strcmp(settings.domain, "socket") == 0) return here.socket;
  return strcmp(settings.domain, "cache") == 0 ? here.cache : here.numa;
}

// Whether they are more than the CPUs' worth of time that some of them have together.
bool exceed_quota(const Member* members, int count) {
  return std::any_of(members, members + count, [&](const Member& m) {
    const auto shares = [&](const Member& other) { return other.cpu_quota.group == m.cpu_quota.group; };
    return m.cpu_quota.cpus > 0 && double(std::count_if(members, members + count, shares)) > m.cpu_quota.cpus;
  });
}

}  // namespace

Sharing find_sharing(const Member* members, int count, int self) {
  Sharing sharing;
  platform::CpuSet all;
  for (int i = 0; i < count; ++i) {
    all.merge(members[i].cpus);
    if (members[i].scheduling_group != members[0].scheduling_group) sharing.yields_reach = false;
    int first = count, same = 0;
    for (int k = count - 1; k >= 0; --k)
      if (members[k].cpus == members[i].cpus) ++same, first = k;
    const int surplus = same - members[i].cpus.count();
    if (surplus > 0) sharing.crowded = true;
    if (i != self && members[i].cpus.meets(members[self].cpus)) sharing.own_cpus = false;
    if (i == self && surplus > 0) sharing.first = first, sharing.surplus = surplus;
  }
  sharing.same_cpus =
      count > all.count() && std::all_of(members, members + count, [&](const Member& m) { return m.cpus == all; });
  const bool short_of_time = exceed_quota(members, count);
  // What looks on then uses up what all may have, even on a CPU of its own: what is scheduled together has one quota.
  const bool share_quota = short_of_time && sharing.yields_reach;
  if (share_quota) sharing.yields_reach = false;
  const int cpus = share_quota ? std::min(all.count(), std::max(1, int(members[0].cpu_quota.cpus))) : all.count();
  if (short_of_time || count > cpus) sharing.crowded = true;
  if (count > cpus && (share_quota || sharing.surplus == 0)) sharing.first = 0, sharing.surplus = count - cpus;
  return sharing;
}

int domains_of(const Member* members, int count) {
  int domains = 0;
  for (int i = 0; i < count; ++i) {
    bool seen = false;
    for (int k = 0; k < i; ++k) seen = seen || members[k].domain == members[i].domain;
    domains += !seen;
  }
  return domains;
}

Status Job::join(const Place& place, const Settings& settings, const select::Rules& rules) {
  place_ = place;
  settings_ = settings;
  uint64_t deadline = now_ns() + settings.join_timeout_ms * 1'000'000;
  platform::Rendezvous rendezvous;
  speaks_ = place_.local_rank == 0;
  if (const Status opened = open_segment(rendezvous, deadline); !opened.ok()) {
    const bool alone = rendezvous.claim_voice();  // local rank 0 too, so that no other one adds to what it says
    speaks_ = speaks_ || (alone && opened.code == Code::timed_out);
    return opened;
  }
  STRETTO_TRY(map_header());
  fingerprint_ = common_fingerprint(settings, rules);
  enter(fingerprint_);
  Status agreed = agree(deadline);
  meet_nodes(agreed.ok());
  STRETTO_TRY(agreed);
  pool_ = Pool(&header_->pool, &segment_);
  sharing_ = find_sharing(header_->members, place_.local_size, place_.local_rank);
  if (sharing_.crowded && sharing_.yields_reach) watch_crowd();
  domains_ = domains_of(header_->members, place_.local_size);
  if (settings.arena) share_arenas(rendezvous);
  joined_ = true;
  return Status::good();
}

// The ranks that are too many for the CPUs of this one, or else all of them.
void Job::watch_crowd() {
  Member *const members = header_->members, &self = members[place_.local_rank];
  const auto same = [&](const Member& member) { return member.cpus == self.cpus; };
  const bool apart = std::count_if(members, members + place_.local_size, same) > self.cpus.count();
  const auto clock_of = [&](const Member& member) {
    return member.process.name_space == self.process.name_space ? platform::CpuClock(member.process.pid) : platform::CpuClock();
  };
  crowd_ = {apart ? &members[sharing_.first].contention : &members[0].contention_of_all, &self.work, {}};
  for (const Member* member = members; member < members + place_.local_size; ++member)
    if (member != &self && (!apart || same(*member))) crowd_.others.push_back({&member->work, clock_of(*member)});
  self.work.go_on(now_ns());
  sharing_.crowd = &crowd_;
}

Status Job::open_segment(platform::Rendezvous& rendezvous, uint64_t deadline) {
  STRETTO_TRY(rendezvous.open(place_.job, place_.local_rank));
  if (place_.local_rank == 0) {
    STRETTO_TRY(make_segment());
    return rendezvous.give(segment_.fd(), place_.local_size, deadline);
  }
  int fd = -1;
  STRETTO_TRY(rendezvous.take(&fd, deadline));
  segment_.adopt(fd, Segment::window_bytes);
  return Status::good();
}

Status Job::make_segment() {
  STRETTO_TRY(segment_.create());
  if (!platform::is_memfd(segment_.fd()))
    log(Level::warning, "memfd_create is refused here: shared memory comes from /dev/shm, %llu MiB of it",
        static_cast<unsigned long long>(segment_.bytes() >> 20));
  auto* header = static_cast<JobHeader*>(segment_.at(0));
  if (header == nullptr) return no_memory("shared memory cannot be mapped");
  size_t bytes = header_bytes(place_.local_size);
  if (bytes > Segment::window_bytes) return refused("too many ranks on this node");
  header->bytes = segment_.bytes();
  header->local_size = uint32_t(place_.local_size);
  STRETTO_TRY(Pool::initialise(&header->pool, round_up(bytes, 4096), pool_cap(settings_), segment_.bytes()));
  header->magic = magic;
  return Status::good();
}

Status Job::map_header() {
  header_ = static_cast<JobHeader*>(segment_.at(0));
  if (header_ == nullptr) return no_memory("shared memory cannot be mapped");
  if (header_->magic != magic || header_->local_size != uint32_t(place_.local_size))
    return refused("the ranks disagree on how many of them run on this node");
  segment_.set_bytes(header_->bytes);
  return Status::good();
}

void Job::enter(uint64_t fingerprint) {
  Member& me = header_->members[place_.local_rank];
  platform::allow_memory_readers();
  probe_word = now_ns() ^ (uint64_t(place_.world_rank) << 32);
  me.world_rank = place_.world_rank;
  me.world_size = place_.world_size;
  me.process = platform::self_process();
  me.cpus = platform::allowed_cpus();
  me.domain = own_domain(settings_, me.cpus, place_.local_rank);
  me.cpu_quota = platform::cpu_quota();
  me.scheduling_group = platform::scheduling_group();
  me.fingerprint = fingerprint;
  me.probe_address = reinterpret_cast<uint64_t>(&probe_word);
  me.probe_value = probe_word;
  me.arena_bytes = settings_.arena ? arenas_.find() : 0;
  transport::XpmemCalls calls;
  if (transport::load_xpmem("libxpmem.so.0", "/dev/xpmem", &calls).ok()) {
    me.xpmem_segment = transport::make_xpmem_segment(calls);
    xpmem_.reset(new (std::nothrow) transport::XpmemPeers(calls, place_.local_size));
    if (xpmem_ && !xpmem_->usable()) xpmem_.reset();
  }
  me.registered.store(1, std::memory_order_release);
  header_->registered.fetch_add(1, std::memory_order_acq_rel);
  platform::futex_wake_all(&header_->registered);
}

// All are registered: do their settings agree, and are they ranks of one world?
Verdict Job::judge() const {
  for (int i = 1; i < place_.local_size; ++i)
    if (header_->members[i].fingerprint != header_->members[0].fingerprint) return Verdict::settings_differ;
  for (int i = 0; i < place_.local_size; ++i) {
    if (header_->members[i].world_size != header_->members[0].world_size) return Verdict::worlds_differ;
    for (int k = 0; k < i; ++k)
      if (header_->members[i].world_rank == header_->members[k].world_rank) return Verdict::worlds_differ;
  }
  return Verdict::joined;
}

Status Job::agree(uint64_t deadline) {
  uint32_t present;
  while ((present = header_->registered.load(std::memory_order_acquire)) < uint32_t(place_.local_size)) {
    if (header_->verdict.load(std::memory_order_acquire) != uint32_t(Verdict::open) || now_ns() >= deadline) break;
    platform::futex_wait(&header_->registered, present, 10'000'000);
  }
  Verdict mine = present == uint32_t(place_.local_size) ? judge() : Verdict::ranks_missing;
  uint32_t final = uint32_t(Verdict::open);
  if (header_->verdict.compare_exchange_strong(final, uint32_t(mine))) final = uint32_t(mine);
  switch (Verdict(final)) {
    case Verdict::joined:
      return Status::good();
    case Verdict::worlds_differ:
      return refused("ranks of different launches met: start them with stretto run");
    case Verdict::settings_differ:
      return refused("the ranks have different STRETTO_ settings, rules or versions of Stretto");
    default:
      return timed_out("some ranks of this node do not run Stretto", int(present));
  }
}

collective::WaitPolicy Job::wait_policy() const {
  if (strcmp(settings_.wait, "spin") == 0)
    return {.looks = 60, .spins = UINT32_MAX, .patience_ns = 0, .own_cpus = sharing_.own_cpus, .fenced = false};
  if (strcmp(settings_.wait, "yield") == 0) return {.looks = 10, .spins = 20, .patience_ns = UINT64_MAX};
  if (strcmp(settings_.wait, "futex") == 0) return {.looks = 10, .spins = 20, .patience_ns = 0};
  if (!crowded()) return collective::WaitPolicy::dedicated(sharing_.own_cpus);
  if (sharing_.yields_reach) return collective::WaitPolicy::oversubscribed(sharing_.crowd);
  return collective::WaitPolicy::in_turns(header_->members[sharing_.first].early_sleepers, sharing_.surplus);
}

void Job::say_pool_is_full() {
  if (first_to_say(Notice::pool_full))
    log(Level::warning, "%llu MiB of shared memory (STRETTO_MEMORY_MIB) are used up: collectives that need more are left to MPI",
        static_cast<unsigned long long>(header_->pool.cap >> 20));
}

// The setting is equal on all ranks, so all come here.
void Job::share_arenas(platform::Rendezvous& rendezvous) {
  std::unique_ptr<uint64_t[]> bytes(new (std::nothrow) uint64_t[size_t(place_.local_size)]);
  if (bytes == nullptr) return;  // the others find out that this rank maps nothing
  for (int i = 0; i < place_.local_size; ++i) bytes[i] = header_->members[i].arena_bytes;
  uint64_t deadline = now_ns() + settings_.join_timeout_ms * 1'000'000;
  arenas_.share(rendezvous, header_->arenas, bytes.get(), place_.local_size, place_.local_rank, deadline);
}

int Job::member_of(int world_rank) const {
  // Ranks usually stand in order; else search.
  if (world_rank < 0) return -1;
  if (world_rank < place_.local_size && header_->members[world_rank].world_rank == world_rank) return world_rank;
  for (int i = 0; i < place_.local_size; ++i)
    if (header_->members[i].world_rank == world_rank) return i;
  return -1;
}

}  // namespace stretto::engine
