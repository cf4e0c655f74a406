#include "collective/patterns/prefix_reduce.hpp"

#include <string.h>

#include "collective/patterns/exchange.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

// A user's function works in the output, where it must not find this rank's own contribution.
bool own_must_move(const Request& request, Prefix prefix) {
  return prefix == Prefix::with_own && request.op == kernels::Op::user && request.input == request.output;
}

class StagedPrefix {
 public:
  StagedPrefix(Team& team, const Request& request, Prefix prefix)
      : team_(team),
        request_(request),
        rounds_(team, request, team.fine_pieces ? staged_piece(team, request.bytes()) : 0),
        prefix_(prefix),
        own_moves_(own_must_move(request, prefix)),
        stages_(team.rank + 1 < team.size || own_moves_) {}

  Status run() {
    if (team_.rank == 0 && !own_moves_) rounds_.drained_all();
    STRETTO_TRY(stage(0));
    for (uint32_t i = 0; i < rounds_.count(); ++i) {
      STRETTO_TRY(stage(i + 1));
      STRETTO_TRY(reduce(i));
    }
    if (stages_) rounds_.fetch_next();
    return Status::good();
  }

 private:
  Status stage(uint32_t i) { return stages_ && i < rounds_.count() ? rounds_.stage(i, request_.input) : Status::good(); }

  Status reduce(uint32_t i) {
    const Range range = rounds_.range(i);
    const void** inputs = team_.pointers();
    for (int r = 0; r < team_.rank; ++r) STRETTO_TRY(rounds_.wait_filled(r, i));
    for (int r = 0; r < inputs_of(team_.rank, prefix_); ++r) {
      inputs[r] = static_cast<const char*>(request_.input) + rounds_.at(range);
      if (r < team_.rank || own_moves_) STRETTO_TRY(rounds_.get(r, i, range, &inputs[r]));
    }
    void* out = static_cast<char*>(request_.output) + rounds_.at(range);
    combine_prefix(request_, inputs, inputs_of(team_.rank, prefix_), out, range.size());
    if (team_.rank > 0 || own_moves_) rounds_.drained(i);
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  const Prefix prefix_;
  const bool own_moves_, stages_;
};

}  // namespace

void combine_prefix(const Request& request, const void* const* inputs, int p, void* out, size_t n) {
  if (p > 1)
    combine(request, inputs, p, out, n);
  else if (p == 1 && inputs[0] != out)
    kernels::copy(out, inputs[0], n * request.element);
}

Status prefix_flat(Team& team, const Request& request, Prefix prefix) {
  const bool shows = team.rank + 1 < team.size, own_moves = own_must_move(request, prefix);
  Exchange exchange(team);
  void* deposited = nullptr;
  if (shows || own_moves) {
    STRETTO_TRY(exchange.claim(&deposited));
    memcpy(deposited, request.input, request.bytes());
  }
  if (shows) exchange.post(request.bytes(), note_of(request));
  const void** inputs = team.pointers();
  Status alike;
  for (int r = 0; r < team.rank; ++r) STRETTO_TRY(read_alike(exchange, request, r, &inputs[r], &alike));
  inputs[team.rank] = own_moves ? deposited : request.input;
  if (alike.ok()) combine_prefix(request, inputs, inputs_of(team.rank, prefix), request.output, request.count);
  exchange.finish();
  if (shows) exchange.fetch_next(request.bytes());
  return alike;
}

Status prefix_staged(Team& team, const Request& request, Prefix prefix) {
  return StagedPrefix(team, request, prefix).run();
}

}  // namespace stretto::collective
