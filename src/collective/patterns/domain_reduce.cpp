#include "collective/patterns/by_domain.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

constexpr size_t block_bytes = 16 << 10;  // reduced and copied on while it is in the first-level cache

class DomainReduction {
 public:
  DomainReduction(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        domains_(team.domains),
        request_(request),
        rounds_(team, request),
        all_(consumers == Consumers::all),
        consumer_(consumes(consumers, request, team.rank)),
        home_(domains_.of(team.rank)),
        place_(domains_.index(team.rank)),
        grain_(line_grain(request.element)) {}

  // Four rounds are on their way at once, one in each step: as many as the cells hold at least.
  Status run() {
    uint32_t rounds = rounds_.count();
    for (uint32_t step = 0; step < rounds + 3; ++step) {
      if (step < rounds) STRETTO_TRY(stage(step));
      if (step >= 1 && step - 1 < rounds) STRETTO_TRY(reduce_home(step - 1));
      if (step >= 2 && step - 2 < rounds) STRETTO_TRY(reduce_domains(step - 2));
      if (step >= 3) STRETTO_TRY(deliver(step - 3));
    }
    return Status::good();
  }

 private:
  // Part `d` of round i is finished in domain d. Piece k of it is the affair of the k-th rank of each domain `in`.
  Range part(uint32_t i, int d) const { return part_of(rounds_.range(i), d, domains_.count(), grain_); }
  Range piece(uint32_t i, int d, int in, int k) const { return part_of(part(i, d), k, domains_.size(in), grain_); }
  Range own(uint32_t i, int d) const { return piece(i, d, home_, place_); }

  char* output(const Range& range) const { return static_cast<char*>(request_.output) + rounds_.at(range); }
  Status wait(Signal RankBoard::* signal, int rank, uint32_t i) {
    if (rank == team_.rank) return Status::good();
    STRETTO_TRY(team_.waiter.until(team_.board(rank).*signal, rounds_.number(i), rank));
    return i == 0 ? rounds_.compare(rank) : Status::good();
  }

  // What the neighbours reduce: all but the own pieces.
  Status stage(uint32_t i) {
    STRETTO_TRY(rounds_.free(i));
    for (int d = 0; d < domains_.count(); ++d) {
      Range whole = part(i, d), mine = own(i, d);
      for (const Range& run : {Range{whole.begin, mine.begin}, Range{mine.end, whole.end}})
        STRETTO_TRY(rounds_.put(i, run, request_.input));
    }
    rounds_.filled(i);
    return Status::good();
  }

  // The own piece of every part, over the ranks of the domain.
  Status reduce_home(uint32_t i) {
    int ranks = domains_.size(home_);
    for (int k = 0; k < ranks; ++k) {
      STRETTO_TRY(wait(&RankBoard::filled, domains_.member(home_, k), i));
    }
    const void** inputs = team_.pointers();
    for (int d = 0; d < domains_.count(); ++d) {
      Range mine = own(i, d);
      if (mine.size() == 0) continue;
      for (int k = 0; k < ranks; ++k)
        if (k == place_)
          inputs[k] = static_cast<const char*>(request_.input) + rounds_.at(mine);
        else
          STRETTO_TRY(rounds_.get(domains_.member(home_, k), i, mine, &inputs[k]));
      combine(request_, inputs, ranks, rounds_.in_cell(i, mine), mine.size());
    }
    team_.waiter.announce(team_.mine().partial, rounds_.number(i));
    return Status::good();
  }

  // Calls use(rank, range) for the pieces of part d, as domain `in` cuts it, that overlap `range`.
  template <class Use>
  Status each_holder(uint32_t i, int d, int in, const Range& range, Use use) {
    for (int k = 0; k < domains_.size(in); ++k) {
      Range theirs = piece(i, d, in, k);
      Range both{std::max(theirs.begin, range.begin), std::min(theirs.end, range.end)};
      Status status = both.begin < both.end ? use(domains_.member(in, k), both) : Status::good();
      if (!status.ok()) return status;
    }
    return Status::good();
  }

  // The own piece of the own part, over the domains. Domains of other sizes cut it in other places.
  Status reduce_domains(uint32_t i) {
    Range mine = own(i, home_);
    for (int d = 0; d < domains_.count(); ++d)
      STRETTO_TRY(each_holder(i, home_, d, mine, [&](int r, const Range&) { return wait(&RankBoard::partial, r, i); }));
    size_t block = std::max<size_t>(block_bytes / request_.element, 1);
    for (size_t begin = mine.begin; begin < mine.end;) {
      Range range{begin, std::min(begin + block, mine.end)};
      STRETTO_TRY(reduce_block(i, &range));
      begin = range.end;
    }
    rounds_.reduced(i);
    return Status::good();
  }

  // From the beginning of *range as far as one rank of each domain has it.
  Status reduce_block(uint32_t i, Range* range) {
    const void** inputs = team_.pointers();
    for (int d = 0; d < domains_.count(); ++d) {
      Range first{range->begin, range->begin + 1};
      STRETTO_TRY(each_holder(i, home_, d, first, [&](int r, const Range&) {
        range->end = std::min(range->end, piece(i, home_, d, domains_.index(r)).end);
        return rounds_.get(r, i, first, &inputs[d]);
      }));
    }
    char* place = rounds_.in_cell(i, *range);
    combine(request_, inputs, domains_.count(), place, range->size());
    if (consumer_) kernels::copy(output(*range), place, rounds_.bytes(*range));
    return Status::good();
  }

  Status deliver(uint32_t i) {
    if (all_) {
      STRETTO_TRY(bring(i));
      STRETTO_TRY(collect(i));
    } else if (consumer_) {
      STRETTO_TRY(collect_at_root(i));
    }
    rounds_.drained(i);
    return Status::good();
  }

  // The results of other domains for the own pieces, in place of the partial results, which their finishers have read.
  Status bring(uint32_t i) {
    auto take = [&](int r, const Range& range) {
      const void* data;
      STRETTO_TRY(wait(&RankBoard::reduced, r, i));
      STRETTO_TRY(rounds_.get(r, i, range, &data));
      kernels::copy(rounds_.in_cell(i, range), data, rounds_.bytes(range));
      kernels::copy(output(range), rounds_.in_cell(i, range), rounds_.bytes(range));
      return Status::good();
    };
    for (int k = 1; k < domains_.count(); ++k) {
      int d = (home_ + k) % domains_.count();
      STRETTO_TRY(each_holder(i, d, d, own(i, d), take));
    }
    team_.waiter.announce(team_.mine().spread, rounds_.number(i));
    return Status::good();
  }

  Status collect(uint32_t i) {
    int ranks = domains_.size(home_);
    for (int k = 1; k < ranks; ++k) {
      int place = (place_ + k) % ranks, r = domains_.member(home_, place);
      STRETTO_TRY(wait(&RankBoard::spread, r, i));
      for (int d = 0; d < domains_.count(); ++d) STRETTO_TRY(copy_out(i, r, piece(i, d, home_, place)));
    }
    return Status::good();
  }

  Status collect_at_root(uint32_t i) {
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size, d = domains_.of(r);
      STRETTO_TRY(wait(&RankBoard::reduced, r, i));
      STRETTO_TRY(copy_out(i, r, piece(i, d, d, domains_.index(r))));
    }
    return Status::good();
  }

  Status copy_out(uint32_t i, int r, const Range& range) {
    const void* data;
    if (range.size() == 0) return Status::good();
    STRETTO_TRY(rounds_.get(r, i, range, &data));
    kernels::copy(output(range), data, rounds_.bytes(range));
    return Status::good();
  }

  Team& team_;
  const Domains& domains_;
  const Request& request_;
  Rounds rounds_;
  const bool all_, consumer_;
  const int home_, place_;
  const size_t grain_;
};

}  // namespace

Status domain_reduce(Team& team, const Request& request, Consumers consumers) {
  return DomainReduction(team, request, consumers).run();
}

}  // namespace stretto::collective
