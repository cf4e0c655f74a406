#include "engine/communicator.hpp"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <bit>
#include <new>

#include "base/log.hpp"
#include "collective/patterns/slots.hpp"
#include "engine/across_nodes.hpp"
#include "engine/reach.hpp"
#include "trace/stopwatch.hpp"

namespace stretto::engine {
namespace {

// Of a last-level cache, what a job can reckon with: others use it too, on virtual machines unseen. (Measured on one that is told
// of 105 MiB: with buffers of 16 MiB in all it is better to store into the cache, with 32 MiB past it.)
constexpr size_t cache_at_most = 32 << 20;

// What a communicator is known by in the record: its board, which a later one gets too, and its members.
uint64_t identity_of(uint64_t board, const int* members, int size) {
  uint64_t hash = board;
  for (int rank = 0; rank < size; ++rank) hash = (hash ^ uint64_t(members[rank])) * 0x9e3779b97f4a7c15u;
  return hash | 1;  // 0: none
}

using collective::Board;
using collective::Request;
using collective::Team;
using select::Reason;

}  // namespace

Communicator::Communicator(Job& job, const Policy& policy, const int* members, int size, int rank, uint64_t board, Board* shared)
    : rank_(rank),
      size_(size),
      job_(&job),
      policy_(&policy),
      rules_(policy.rules),
      board_(board),
      members_(new (std::nothrow) int[size_t(size)]) {
  if (members_) memcpy(members_.get(), members, size_t(size) * sizeof(int));
  collective::WaitHooks hooks{policy.host.progress, &Communicator::alive, this, policy.host.windows};
  collective::Waiter waiter(job.wait_policy(), hooks);
  team_.reset(new (std::nothrow) Team(rank, size, shared, waiter));
  if (team_ && members_) settle(*team_, size);
  if (team_ && !team_->waiter.has_own_cpu() && job.sharing().same_cpus && size == job.local_size())
    team_->waiter.mates.sit(shared, rank, size);
  if (team_) team_->arrival_order = policy.arrival_order;
  if (team_) team_->arrivals.record_as(identity_of(board, members, size));
  if (team_) team_->stream_from = std::min(platform::last_level_cache(), cache_at_most) / size_t(size);
}

Communicator::Communicator(Reason reason) : reason_(reason) {}

// Where its ranks stand, and how they may use that. Where they take turns on their CPUs, few read at a time as it is.
void Communicator::settle(Team& team, int size) {
  int32_t domains[collective::max_team];
  for (int r = 0; r < size; ++r) domains[r] = job_->member(members_[r]).domain;
  team.readers = job_->crowded() ? 0 : policy_->readers;
  team.any_order = policy_->any_order;
  if (!team.domains.describe(domains, size)) team_.reset();  // without memory this rank takes no part
}

Communicator::~Communicator() = default;

// One node's ranks need not vote on a board that all have mapped, as they have the segment's first window. The price: one that
// has no memory for a state of its own can only end the job, as others go on without hearing of it.
Communicator* Communicator::create(Job& job, const Policy& policy, const int* members, int size, int rank, void* comm) {
  bool used = false;
  uint64_t offset = rank == 0 ? job.pool().allocate(Board::bytes(size), &used) : 0;
  if (rank == 0 && offset == 0) job.say_pool_is_full();
  auto* board = offset ? static_cast<Board*>(job.segment().at(offset)) : nullptr;
  if (board != nullptr && used) board->clear(size);
  if (board == nullptr && offset != 0) {
    job.pool().release(offset, Board::bytes(size));
    offset = 0;
  }
  const uint64_t taken = offset;
  const bool spans_nodes = policy.host.least != nullptr;
  if (!policy.host.broadcast(comm, &offset, sizeof offset) || offset == 0) {
    if (taken && spans_nodes) job.pool().release(taken, Board::bytes(size));  // on one node others may have heard of it
    return new (std::nothrow) Communicator(Reason::no_shared_memory);
  }
  if (rank != 0) board = static_cast<Board*>(job.segment().at(offset));
  auto* made = board ? new (std::nothrow) Communicator(job, policy, members, size, rank, offset, board) : nullptr;
  const bool usable = made != nullptr && made->usable();
  if (!spans_nodes && offset < Segment::window_bytes) {
    if (usable) return made;
    log(Level::error, "no memory for the state of a communicator of %d ranks: the job cannot go on", size);
    abort();
  }
  if (policy.host.all(comm, usable)) return made;
  delete made;  // a rank could not map the board: none uses it
  if (rank == 0) job.pool().release(offset, Board::bytes(size));
  return new (std::nothrow) Communicator(Reason::no_shared_memory);
}

Communicator* Communicator::twin(void* comm) const {
  return create(*job_, *policy_, members_.get(), size_, rank_, comm);
}

void Communicator::let_go() {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  leave();
  delete this;
}

void Communicator::leave() {
  if (across_) across_->leave();
  if (board_ == 0) return;
  close_arrivals();
  Board& shared = team_->shared();
  if (shared.left.fetch_add(1, std::memory_order_acq_rel) + 1 != uint32_t(team_->size)) return;
  release_stage(shared);
  job_->pool().release(board_, Board::bytes(team_->size));
}

// A rank that has waited for long says in which call, and looks whether another waits in the same for something else: for ever,
// each for what the other will not do. No number stands beside what belongs to another one: it is taken away in between.
bool Communicator::disagrees() {
  if (across_ || doing_.number == 0) return false;
  collective::RankBoard& mine = team_->mine();
  if (mine.stuck_in.load(std::memory_order_relaxed) != doing_.number) {
    mine.stuck_in.store(0, std::memory_order_relaxed);
    mine.stuck_with.store(doing_.with, std::memory_order_release);
    mine.stuck_in.store(doing_.number, std::memory_order_release);
  }
  for (int r = 0; r < team_->size; ++r) {
    const collective::RankBoard& theirs = team_->board(r);
    if (theirs.stuck_in.load(std::memory_order_acquire) != doing_.number) continue;
    const uint64_t with = theirs.stuck_with.load(std::memory_order_acquire);
    if (with == doing_.with || theirs.stuck_in.load(std::memory_order_relaxed) != doing_.number) continue;
    const auto kind = [](uint64_t of) { return collective::name(collective::Kind(of & 255)); };
    const auto bytes = [](uint64_t of) { return static_cast<unsigned long long>(of >> 8); };
    log(Level::error, "ranks call different collectives, or with different sizes: rank %d %s of %llu bytes, rank %d %s of %llu",
        rank_, kind(doing_.with), bytes(doing_.with), r, kind(with), bytes(with));
    return true;
  }
  return false;
}

bool Communicator::alive(void* self, int rank) {
  auto* communicator = static_cast<Communicator*>(self);
  if (communicator->disagrees()) communicator->abandon(Board::by_disagreement);
  const Board& shared = communicator->team_->shared();
  if (shared.revoked.load(std::memory_order_acquire)) return false;
  if (shared.abandoned.load(std::memory_order_acquire) != 0) return false;
  if (shared.lost.load(std::memory_order_acquire) != 0) return false;  // who is awaited may live and have given up
  if (rank != collective::any_rank) return communicator->job_->alive(communicator->members_[rank]);
  return communicator->dead_rank() == collective::any_rank;
}

// The first that is dead; any_rank: none.
int Communicator::dead_rank() const {
  for (int r = 0; r < team_->size; ++r)
    if (!job_->alive(members_[r])) return r;
  return collective::any_rank;
}

const select::Selection& Communicator::select(const Request& request) {
  auto& last = last_[int(request.kind)];
  if (last.bytes == request.bytes()) return last.selection;
  last.bytes = request.bytes();
  select::Facts facts{request.kind, request.bytes(), team_->size, job_->crowded(), policy_->travel};
  facts.arena = job_->arenas().shared();
  facts.domains = team_->domains.count();
  facts.library = policy_->library;
  facts.cpu = cpu_here();
  last.selection = select::choose(*rules_, facts);
  facts.fresh = fresh_calls_ > 0 && policy_->travel == select::Travel::by_rules && last.selection.algorithm >= 0 &&
                collective::algorithms[last.selection.algorithm].needs_stage;
  last.first = facts.fresh ? select::choose(*rules_, facts) : select::Selection{};
  return last.selection;
}

// Of a call that has been selected: what rules say of first calls, if they do. (Sizes are rounded, as ranks whose message was too
// long for its room go on, each with its own idea of it.)
[[gnu::noinline, gnu::cold]] const select::Selection& Communicator::select_first(const Request& request) {
  const auto& last = last_[int(request.kind)];
  if (last.first.algorithm < 0) return last.selection;
  bytes_while_fresh_ += std::bit_ceil(request.bytes());
  fresh_calls_ = bytes_while_fresh_ < fresh_bytes ? fresh_calls_ - 1 : 0;
  return last.first;
}

// What cannot be had is told to the peers per call.
void Communicator::reach_directly() {
  direct_prepared_ = true;
  team_->direct = reach_peers(*job_, members_.get(), team_->size, team_->rank, policy_->fault);
}

void* Communicator::borrow(size_t bytes, uint64_t* offset) {
  *offset = job_->pool().allocate(bytes);
  return *offset ? job_->segment().at(*offset) : nullptr;
}

void Communicator::give_back(uint64_t offset, size_t bytes) {
  job_->pool().release(offset, bytes);
}

void Communicator::abandon(uint32_t why) {
  uint32_t nobody = 0;
  team_->shared().abandoned.compare_exchange_strong(nobody, (uint32_t(team_->rank) + 1) | why, std::memory_order_acq_rel);
  abandoned_ = true;
}

// After a death MPI is asked, which may know of a way to go on; after an abandoned call it must not be, as some ranks learn of
// it later than others. A truncated message is no failure of the communicator's.
Status Communicator::failed(const Status& status) {
  if (status.code == Code::truncated) return status;
  if (team_->shared().revoked.load(std::memory_order_acquire)) {
    reason_ = Reason::revoked;
    return revoked();
  }
  if (status.code == Code::disagreed) {
    abandon(Board::by_disagreement);
    return status;
  }
  uint32_t by = team_->shared().abandoned.load(std::memory_order_acquire);
  abandoned_ = by != 0;
  const int rank = int(by & ~Board::by_disagreement) - 1;
  if ((by & Board::by_disagreement) != 0) return calls_differ(rank);
  if (abandoned_) return peer_lost("a rank could not take part", rank);
  reason_ = Reason::peer_lost;
  if (status.code != Code::peer_lost) return status;
  lost_ = tell_lost(status.detail == collective::any_rank ? dead_rank() : status.detail);
  return peer_lost(status.what, lost_);
}

void Communicator::tell_revoked() {
  team_->shared().revoked.store(true, std::memory_order_release);
}

// Where it has declined since a rank died, others may still be waiting.
void Communicator::revoke() {
  const bool has_left = declines();
  if (across_) {
    across_->revoke();
    if (has_left) across_->settle();
  } else if (team_) {
    tell_revoked();
  }
  if (!has_left) reason_ = Reason::revoked;
}

// Of several dead ranks one is named to all: that of the first call that has ended for it. Those who end later may be dead
// because their program ends.
int Communicator::tell_lost(int rank) {
  uint32_t nobody = 0;
  auto& lost = team_->shared().lost;
  lost.compare_exchange_strong(nobody, uint32_t(rank) + 1, std::memory_order_acq_rel);
  return int(lost.load(std::memory_order_acquire)) - 1;
}

// Calls that find their peers ready do not wait, and waiting is what drives MPI elsewhere.
[[gnu::noinline, gnu::cold]] void Communicator::look_around(bool noted_later) {
  calls_to_look_ = calls_between_looks;
  if (!noted_later) team_->arrivals.note(ticks());
  if (policy_->host.progress) policy_->host.progress(nullptr);
}

// What prepare() does, and the beginning of run(), where it must cost neither a call nor a copy. The algorithm, or -1.
[[gnu::always_inline]] inline int Communicator::decide(const Request& request, Reason* reason, Status* status, bool rehearses) {
  *reason = this->reason();
  if (*reason != Reason::none) return -1;  // also where across_ does it
  end_operations();
  known_stage_ = stage_;
  if (is_turn_of_mpi()) return *reason = Reason::turn_of_mpi, -1;
  const select::Selection& selection = select(request);
  *reason = selection.reason;
  if (selection.algorithm < 0) return -1;
  begin(request);
  const collective::Algorithm& algorithm = collective::algorithms[selection.algorithm];
  if (--calls_to_look_ == 0) look_around(algorithm.needs_stage);
  // Ranks that do not know yet of an abandoned call decline all the same: so what declines does so before that is looked at.
  if (abandoned_) *status = failed({});
  if (__builtin_expect(stage_wanted_, 0) && status->ok()) settle_wanted_stage(status);
  if (!algorithm.needs_stage) return selection.algorithm;
  trace::takes_long();
  team_->arrivals.note(trace::stopwatch.begin);  // the clock was read anyway
  *reason = Reason::large_element;
  if (request.op == kernels::Op::user && !fits_into_cell(request)) return -1;
  if (stage_ == unknown && status->ok()) *status = settle_stage();
  *reason = Reason::no_staging_memory;
  if (stage_ == absent) return -1;
  const bool first = __builtin_expect(fresh_calls_ != 0, 0) && !rehearses;
  const select::Selection& chosen = first ? select_first(request) : selection;
  prepare_direct(collective::algorithms[chosen.algorithm]);
  team_->unmapped = collective::way_of(chosen.unmapped);
  if (!status->ok()) *status = failed(*status);
  return chosen.algorithm;
}

// A blocking call that goes no further than its choice, and finds out what prepare_started() must know.
Outcome Communicator::rehearse(Operation& operation, const Request& request) {
  Reason reason;
  Status status;
  const int algorithm = decide(request, &reason, &status, true);
  known_stage_ = stage_;
  operation.algorithm = status.ok() ? algorithm : -1;
  return {-1, reason, {}};
}

// Waits for nobody, so what an operation that is still under way may change must not count: whether there are cells is taken as
// it stood when all ranks last knew. What the operation then lacks it does without.
Outcome Communicator::prepare_started(Operation& operation, const Request& request) {
  if (across_) return prepare_started_across(operation, request);
  if (operation.rehearses()) return rehearse(operation, request);
  if (reason() != Reason::none) return {-1, reason(), {}};
  if (is_turn_of_mpi()) return {-1, Reason::turn_of_mpi, {}};
  const select::Selection& selection = select(request);
  if (selection.algorithm < 0) return {-1, selection.reason, {}};
  operation.algorithm = selection.algorithm;
  operation.unmapped = selection.unmapped;
  if (!collective::algorithms[selection.algorithm].needs_stage) return {selection.algorithm, Reason::none, {}};
  const bool has_stage = known_stage_ == ready || (known_stage_ == unknown && collective::fits_in_slots(request));
  if (!has_stage) {
    stage_wanted_ = known_stage_ == unknown;
    return {-1, stage_wanted_ ? Reason::not_prepared : Reason::no_staging_memory, {}};
  }
  return {selection.algorithm, Reason::none, {}};
}

Status Communicator::run_in_turn(const Request& request, int index, int unmapped) {
  const collective::Algorithm& algorithm = collective::algorithms[index];
  if (reason() == Reason::revoked) return revoked();
  if (abandoned_ || reason() == Reason::peer_lost) return peer_lost("a rank died", lost_);
  begin(request);
  if (!algorithm.needs_stage) return algorithm.run(*team_, request);
  if (stage_ == unknown) STRETTO_TRY(prepare_stage());
  if (stage_ == absent) return collective::run_in_slots(*team_, request);
  prepare_direct(algorithm);
  team_->unmapped = collective::way_of(unmapped);
  return algorithm.run(*team_, request);
}

Status Communicator::execute_started(Operation& operation, const Request& request, int algorithm) {
  operation.bytes = request.bytes();
  operation.take_turn(*this, queue_);
  if (across_) return execute_started_across(operation, request, algorithm);
  team_->waiter.begin_beside(operation.has_fiber() ? &operation : nullptr);
  Status status = run_in_turn(request, algorithm, operation.unmapped);
  team_->waiter.end_beside();
  if (!status.ok()) status = failed(status);
  operation.end_turn();
  return status;
}

Outcome Communicator::prepare(const Request& request) {
  if (Operation* operation = Operation::current()) return prepare_started(*operation, request);
  Reason reason;
  Status status;
  int algorithm = decide(request, &reason, &status);
  if (algorithm < 0 && across_) return decide_across(request);
  return {algorithm, algorithm < 0 ? reason : Reason::none, status};
}

Status Communicator::execute(const Request& request, int algorithm) {
  if (Operation* operation = Operation::current()) return execute_started(*operation, request, algorithm);
  if (across_) return execute_across(request, algorithm);
  Status status = collective::algorithms[algorithm].run(*team_, request);
  return status.ok() ? status : failed(status);
}

[[gnu::noinline, gnu::cold]] Outcome Communicator::run_started(Operation& operation, const Request& request) {
  Outcome outcome = prepare_started(operation, request);
  if (outcome.algorithm >= 0) outcome.status = execute_started(operation, request, outcome.algorithm);
  return outcome;
}

Outcome Communicator::run(const Request& request) {
  if (Operation* operation = Operation::at_entry(); __builtin_expect(operation != nullptr, 0))
    return run_started(*operation, request);
  Reason reason;
  Status status;
  int algorithm = decide(request, &reason, &status);
  if (algorithm < 0) {
    if (!across_) return {-1, reason, {}};
    Outcome outcome = decide_across(request);
    if (outcome.algorithm >= 0) outcome.status = execute_across(request, outcome.algorithm);
    return outcome;
  }
  if (status.ok()) {
    status = collective::algorithms[algorithm].run(*team_, request);
    if (!status.ok()) status = failed(status);
  }
  return {algorithm, Reason::none, status};
}

}  // namespace stretto::engine
