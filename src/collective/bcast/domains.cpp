// Bcast, domains: as staged, but one rank of each other domain reads the root's cells and shows what it reads in its own, from
// which its neighbours copy. Each byte crosses to another domain once, and the copies of all ranks overlap piece by piece.
#include "collective/algorithms.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

class DomainBcast {
 public:
  DomainBcast(Team& team, const Request& request)
      : team_(team),
        request_(request),
        rounds_(team, request, std::clamp<size_t>(request.bytes() / 4, 8 << 10, 64 << 10)),
        source_(team.domains.leader(team.domains.of(team.rank), request.root)),
        stages_(source_ == team.rank) {
    if (team.rank != request.root && stages_) source_ = request.root;
  }

  Status run() {
    if (team_.rank == request_.root) return send();
    for (uint32_t i = 0; i < rounds_.count(); ++i) {
      const void* data;
      STRETTO_TRY(rounds_.wait_filled(source_, i));
      STRETTO_TRY(rounds_.get(source_, i, rounds_.range(i), &data));
      STRETTO_TRY(stages_ ? pass_on(i, data) : take(i, data));
    }
    return Status::good();
  }

 private:
  size_t at(uint32_t i) const { return rounds_.at(rounds_.range(i)); }
  size_t bytes(uint32_t i) const { return rounds_.bytes(rounds_.range(i)); }

  Status send() {
    rounds_.drained_all();
    for (uint32_t i = 0; i < rounds_.count(); ++i) STRETTO_TRY(rounds_.stage(i, request_.input));
    return Status::good();
  }

  // The own cell is free: the root has filled the round, for which it had seen that all have drained the cell's former one.
  Status pass_on(uint32_t i, const void* data) {
    STRETTO_TRY(rounds_.put_at(rounds_.place(i), data, bytes(i)));
    rounds_.filled(i);
    return take(i, rounds_.in_cell(i, rounds_.range(i)));
  }

  Status take(uint32_t i, const void* data) {
    if (request_.output != nullptr)
      kernels::copy(static_cast<char*>(request_.output) + at(i), data, bytes(i), team_.store_of(request_.bytes()));
    rounds_.drained(i);
    return Status::good();
  }

  Team& team_;
  const Request& request_;
  Rounds rounds_;
  int source_;         // whose cells this rank reads
  const bool stages_;  // and shows to its neighbours
};

}  // namespace

Status bcast_domains(Team& team, const Request& request) {
  return team.domains.count() == 1 ? bcast_staged(team, request) : DomainBcast(team, request).run();
}

}  // namespace stretto::collective
