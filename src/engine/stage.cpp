// The staging cells of a communicator, and the board on which its ranks claim slices: made at the first call that needs them.
#include <algorithm>

#include "collective/patterns/exchange.hpp"
#include "collective/patterns/rounds.hpp"
#include "engine/communicator.hpp"
#include "transport/shm/shm.hpp"

namespace stretto::engine {
namespace {

using collective::Request;

// Offsets are multiples of 4096: these are none. With that of a stage stands how many cells each rank has.
constexpr uint32_t stage_unasked = 0;
constexpr uint32_t stage_refused = 1;
constexpr uint64_t offset_mask = ~uint64_t(4095);

constexpr uint64_t stage_mark = 0x7374726574746f00;  // what ranks post that prepare their cells; its last bit: they have them

constexpr uint32_t staying = collective::Rounds::staying;
constexpr size_t largest_cell = 256 << 10;            // fewer rounds cost less than what larger cells cost in cache
constexpr size_t smallest_cell = 16 << 10;            // of so little the slices of many ranks are lines still
constexpr uint64_t largest_part = uint64_t(8) << 20;  // the cells in which rounds stay, of all ranks, and those that are rings

size_t stage_cell_bytes(int ranks) {
  size_t bytes = largest_cell;
  while (bytes > smallest_cell && bytes * staying * size_t(ranks) > largest_part) bytes /= 2;
  return bytes;
}

uint32_t cells_of(uint64_t stage) {
  return uint32_t(stage & ~offset_mask);
}

uint64_t stage_bytes(int ranks, uint32_t cells) {
  return stage_cell_bytes(ranks) * cells * uint64_t(ranks);
}

// A rank's ring: twice a second-level cache (patterns/rounds.hpp). Ranks that share a core, and its caches, had better stay
// there.
uint32_t ring_cells(int ranks, bool crowded) {
  const size_t wanted = crowded ? platform::private_cache() / 2 : 2 * platform::private_cache();
  uint32_t ring = 1;
  while (ring * stage_cell_bytes(ranks) < wanted && stage_bytes(ranks, 2 * ring) <= largest_part) ring *= 2;
  return ring;
}

}  // namespace

// Rather cells with a smaller ring than none; the smallest where others will want some too.
uint64_t Communicator::find_stage() {
  uint64_t found = stage_unasked;
  uint32_t ring = job_->pool().is_half_used() ? 1 : ring_cells(team_->size, job_->crowded());
  for (; found == stage_unasked && ring > 0; ring /= 2) {
    const uint64_t bytes = stage_bytes(team_->size, staying + ring);
    found = job_->pool().allocate_once(team_->shared().stage, bytes, Pool::Contents::any, staying + ring,
                                       ring > 1 ? stage_unasked : stage_refused);
  }
  return found;
}

bool Communicator::attach_stage() {
  const uint64_t board = collective::PresenceBoard::bytes(team_->size);
  const uint64_t presence = job_->pool().allocate_once(team_->shared().presence, board, Pool::Contents::zeros, 0, stage_refused);
  const uint64_t stage = find_stage();
  if (stage <= stage_refused || presence <= stage_refused) job_->say_pool_is_full();
  void* base = stage > stage_refused ? job_->segment().at(stage & offset_mask) : nullptr;
  void* claims = presence > stage_refused ? job_->segment().at(presence) : nullptr;
  if (base == nullptr || claims == nullptr) return false;
  const size_t cell = stage_cell_bytes(team_->size);
  const uint32_t cells = cells_of(stage);
  team_->fine_pieces = !job_->crowded() && cpu_here() == Cpu::amd;
  team_->staged = transport::make_shm({static_cast<char*>(base), cell * cells, cell, cells}, team_->rank);
  team_->presence = static_cast<collective::PresenceBoard*>(claims);
  return team_->staged != nullptr;
}

// Whether a round can hold a whole element; where there are blocks, one of each.
bool Communicator::fits_into_cell(const Request& request) const {
  using collective::Kind;
  bool blocks = request.kind == Kind::reduce_scatter || request.kind == Kind::reduce_scatter_block;
  size_t pieces = blocks ? size_t(team_->size) : 1;
  return request.element <= stage_cell_bytes(team_->size) / pieces;
}

// At the first call that needs cells; the ranks tell each other whether all could map them.
Status Communicator::prepare_stage() {
  const uint64_t own = stage_mark | attach_stage();
  collective::PerRank<uint64_t> all(team_->lists);
  STRETTO_TRY(collective::compare_all(*team_, own, all));
  stage_ = ready;
  for (int r = 0; r < team_->size; ++r) {
    if ((all[r] | 1) != (stage_mark | 1)) return calls_differ(r);
    if (all[r] == stage_mark) stage_ = absent;
  }
  return Status::good();
}

// In a blocking call, which may wait for the answers: so all ranks know from now on.
[[gnu::noinline, gnu::cold]] Status Communicator::settle_stage() {
  stage_wanted_ = false;
  if (stage_ == unknown) STRETTO_TRY(prepare_stage());
  known_stage_ = stage_;
  return Status::good();
}

[[gnu::noinline, gnu::cold]] void Communicator::settle_wanted_stage(Status* status) {
  *status = settle_stage();
  if (!status->ok()) *status = failed(*status);
}

void Communicator::release_stage(const collective::Board& shared) {
  const uint64_t stage = shared.stage.load(std::memory_order_acquire), presence = shared.presence.load(std::memory_order_acquire);
  if (presence > stage_refused) job_->pool().release(presence, collective::PresenceBoard::bytes(team_->size));
  if (stage > stage_refused) job_->pool().release(stage & offset_mask, stage_bytes(team_->size, cells_of(stage)));
}

}  // namespace stretto::engine
