// Peers that this rank needs something of, served in the order in which they come: whoever is there is not kept waiting by who
// is not, and when the last one arrives only its part is left to be done.
#pragma once
#include "collective/team.hpp"

namespace stretto::collective {

class Comers {
 public:
  explicit Comers(Team& team) : team_(team), ranks_(team.lists) {}

  void expect(int r) { ranks_[count_++] = r; }
  bool empty() const { return count_ == 0; }

  // Calls serve(r) -> Status for each that is ready(r); those of which done(r) is true afterwards are expected no more. *served:
  // whether there was any.
  template <class Ready, class Serve, class Done>
  Status serve_present(const Ready& ready, const Serve& serve, const Done& done, bool* served) {
    int kept = 0;
    *served = false;
    for (int i = 0; i < count_; ++i) {
      const int r = ranks_[i];
      if (ready(r)) {
        STRETTO_TRY(serve(r));
        *served = true;
        if (done(r)) continue;
      }
      ranks_[kept++] = r;
    }
    count_ = kept;
    return Status::good();
  }

  // Waits until one of them is ready, or or_else() holds. awaited(r): the signal by which r becomes ready, and what it reaches.
  template <class Ready, class Awaited, class OrElse>
  Status wait(const Ready& ready, const Awaited& awaited, const OrElse& or_else) {
    const int likely = likely_next(awaited);
    const auto [signal, target] = awaited(likely);
    const auto any = [&] {
      for (int i = 0; i < count_; ++i)
        if (ready(ranks_[i])) return true;
      return or_else();
    };
    return team_.waiter.until_any(any, *signal, target, likely);
  }

  // All of them: serves each once, as they come.
  template <class Ready, class Serve, class Awaited>
  Status serve_all(const Ready& ready, const Serve& serve, const Awaited& awaited) {
    while (!empty()) {
      bool served;
      STRETTO_TRY(serve_present(ready, serve, [](int) { return true; }, &served));
      if (!served) STRETTO_TRY(wait(ready, awaited, [] { return false; }));
    }
    return Status::good();
  }

 private:
  // Who is slept for: one that has still to come, and does not use to be the last.
  template <class Awaited>
  int likely_next(const Awaited& awaited) const {
    int likely = ranks_[0];
    for (int i = count_ - 1; i >= 0; --i) {
      const auto [signal, target] = awaited(ranks_[i]);
      const bool there = reached(signal->value.load(std::memory_order_acquire), target);
      if (!there && (likely == ranks_[0] || ranks_[i] != team_.arrivals.likely_last())) likely = ranks_[i];
    }
    return likely;
  }

  Team& team_;
  int count_ = 0;
  PerRank<int> ranks_;
};

// What a rank is waited for by.
struct Awaited {
  Signal* signal;
  uint64_t target;
};

}  // namespace stretto::collective
