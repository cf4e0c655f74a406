#include <string.h>

#include "collective/patterns/by_domain.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {
namespace {

// Exchanges: ranks to their leader, leaders to leaders, leaders to ranks.
class LevelsReduction {
 public:
  LevelsReduction(Team& team, const Request& request, Consumers consumers)
      : team_(team),
        domains_(team.domains),
        request_(request),
        root_(consumers == Consumers::root ? request.root : -1),
        home_(domains_.of(team.rank)),
        begun_(team.exchanges),
        inner_(team),
        outer_(team) {}

  Status run_all() {
    Exchange back(team_);
    bool leads = team_.rank == domains_.leader(home_);
    STRETTO_TRY(leads ? lead(back) : follow(back));
    for (int r = 0; r < team_.size; ++r) team_.seen_done(r, begun_);  // all have come, so all have left what was before
    return Status::good();
  }

  Status run_root() {
    if (team_.rank != domains_.leader(home_, root_))
      STRETTO_TRY(show());
    else
      STRETTO_TRY(team_.rank == root_ ? finish_at_root() : reduce_home(true));
    outer_.finish();
    return Status::good();
  }

 private:
  Status show() {
    void* payload;
    STRETTO_TRY(inner_.claim(&payload));
    memcpy(payload, request_.input, request_.bytes());
    inner_.post(request_.bytes(), note_of(request_));
    return Status::good();
  }

  // The own domain's partial result, into the slot of the outer exchange.
  Status reduce_home(bool post) {
    const void** inputs = team_.pointers();
    int ranks = domains_.size(home_);
    for (int k = 0; k < ranks; ++k) {
      int r = domains_.member(home_, k);
      inputs[k] = request_.input;
      if (r != team_.rank) STRETTO_TRY(read_same(inner_, request_, r, &inputs[k]));
    }
    STRETTO_TRY(outer_.claim(&partial_));
    combine(request_, inputs, ranks, partial_, request_.count);
    if (post) outer_.post(request_.bytes(), note_of(request_));
    return Status::good();
  }

  Status reduce_domains(void* out) {
    const void** inputs = team_.pointers();
    for (int d = 0; d < domains_.count(); ++d) {
      inputs[d] = partial_;
      if (d != home_) STRETTO_TRY(read_same(outer_, request_, domains_.leader(d, root_), &inputs[d]));
    }
    combine(request_, inputs, domains_.count(), out, request_.count);
    return Status::good();
  }

  Status finish_at_root() {
    STRETTO_TRY(reduce_home(false));
    return reduce_domains(request_.output);
  }

  Status lead(Exchange& back) {
    void* result;
    STRETTO_TRY(reduce_home(true));
    STRETTO_TRY(back.claim(&result));
    STRETTO_TRY(reduce_domains(result));
    back.post(request_.bytes(), note_of(request_));
    memcpy(request_.output, result, request_.bytes());
    return Status::good();
  }

  Status follow(Exchange& back) {
    const void* result;
    STRETTO_TRY(show());
    STRETTO_TRY(read_same(back, request_, domains_.leader(home_), &result));
    memcpy(request_.output, result, request_.bytes());
    return Status::good();
  }

  Team& team_;
  const Domains& domains_;
  const Request& request_;
  const int root_, home_;
  const uint64_t begun_;
  Exchange inner_, outer_;
  void* partial_ = nullptr;
};

}  // namespace

Status levels_reduce(Team& team, const Request& request, Consumers consumers) {
  LevelsReduction reduction(team, request, consumers);
  return consumers == Consumers::all ? reduction.run_all() : reduction.run_root();
}

}  // namespace stretto::collective
