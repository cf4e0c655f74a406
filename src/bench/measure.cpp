#include "bench/measure.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "bench/statistics.hpp"
#include "bench/ticks.hpp"

namespace stretto::bench {
namespace {

constexpr unsigned most_samples = 4000;
constexpr unsigned most_calls = 2000;

class Race {
 public:
  Race(const Mpi& mpi, const Collective& collective, Data& data, Mode mode, const Plan& plan, StartLine& line)
      : mpi_(mpi),
        collective_(collective),
        data_(data),
        batch_(mode != Mode::single),
        moves_(mode == Mode::batch),
        plan_(plan),
        line_(line) {}

  Point run();

 private:
  int root() const { return moves_ && collective_.rooted ? int(iteration_ % unsigned(data_.ranks)) : plan_.root; }
  void call(const Side& side) { collective_.call(mpi_, *side.calls, side.comm, data_, root()); }
  void rewrite() { fill(collective_, data_, root(), iteration_); }
  double delay_ns() const;
  bool sample(const Side& side, Stamp* stamp);
  void check();
  double round_ns(int warm);
  void settle();
  unsigned batch_calls();
  void shuffle(unsigned round, char* order) const;
  unsigned take(unsigned rounds, Stamp* stamps, char* side_of);
  bool gather(unsigned rounds, Point* point);
  Reading reading() const { return {(plan_.crowded || line_.is_far()) && !batch_, batch_, calls_}; }

  const Mpi& mpi_;
  const Collective& collective_;
  Data& data_;
  bool batch_, moves_;
  const Plan& plan_;
  StartLine& line_;
  unsigned calls_ = 1;
  unsigned iteration_ = 0;  // calls made so far: the same on all ranks
  size_t wrong_ = 0;        // on this rank
  std::unique_ptr<double[]> delays_;
};

double Race::delay_ns() const {
  if (plan_.pattern == nullptr || plan_.pattern->shape == Shape::balanced) return 0;
  delays_of(*plan_.pattern, iteration_ / unsigned(plan_.side_count), data_.ranks, delays_.get());
  return delays_[size_t(data_.rank)] * (plan_.pattern->shape == Shape::replay ? 1 : plan_.spread_us * 1000);
}

// False, without a call, when the race is called off.
bool Race::sample(const Side& side, Stamp* stamp) {
  if (!batch_) rewrite();
  if (!line_.wait(batch_ ? 0 : delay_ns(), &stamp->planned, &stamp->start)) return false;
  stamp->entry = now_ticks();
  for (unsigned i = 0; i < calls_; ++i, ++iteration_) {
    if (batch_) rewrite();
    call(side);
  }
  stamp->exit = now_ticks();
  // On shared cores, what a rank does after it has left would take time from those that are still in the call.
  if (plan_.crowded && !batch_) line_.meet();
  --iteration_;
  wrong_ += count_wrong(collective_, data_, root(), iteration_, false);
  ++iteration_;
  return true;
}

// One call of each side, looked at in full.
void Race::check() {
  for (int i = 0; i < plan_.side_count; ++i) {
    poison(collective_, data_);
    rewrite();
    call(plan_.sides[i]);
    wrong_ += count_wrong(collective_, data_, root(), iteration_, true);
    ++iteration_;
  }
}

// What a sample of each side takes, as the slowest rank sees it, after `warm` rounds that do not count: the best of three, since
// a rank may lose its core meanwhile. Of rounds that take the whole budget alone the first one tells.
double Race::round_ns(int warm) {
  double best = 0;
  for (int i = 0; i <= warm + 2; ++i) {
    Stamp ignored;
    const uint64_t begin = now_ticks();
    for (int s = 0; s < plan_.side_count; ++s) sample(plan_.sides[s], &ignored);
    const double took = to_ns(now_ticks() - begin);
    const double first = i == 0 ? max_over_ranks(mpi_, took) : 0;
    if (first > plan_.budget_ms * 1e6) return first;
    if (i == warm || (i > warm && took < best)) best = took;
  }
  return max_over_ranks(mpi_, best);
}

void Race::settle() {
  const double rounds = plan_.settle_ms * 1e6 / round_ns(2);
  Stamp ignored;
  for (int i = 0; i < 100 && i + 1 <= rounds; ++i)
    for (int s = 0; s < plan_.side_count; ++s) sample(plan_.sides[s], &ignored);
}

unsigned bounded(double value, unsigned least, unsigned most) {
  return value < least ? least : value > most ? most : unsigned(value);
}

// Long enough that the ends of a batch do not matter (and, crowded, that many turns of the cores are in it), short enough for
// many batches.
unsigned Race::batch_calls() {
  const double target_ns = plan_.crowded ? 4e6 : 2e5;
  calls_ = 8;
  return bounded(target_ns * calls_ * plan_.side_count / round_ns(1), calls_, most_calls);
}

// The sides in another order each round, the same on all ranks.
void Race::shuffle(unsigned round, char* order) const {
  for (int i = 0; i < plan_.side_count; ++i) order[i] = char(i);
  uint32_t state = round * 2654435761u + 12345;
  for (int i = plan_.side_count - 1; i > 0; --i) {
    state = state * 1664525u + 1013904223u;
    std::swap(order[i], order[(state >> 16) % uint32_t(i + 1)]);
  }
}

// Returns how many samples were taken: fewer than asked for when other programs on the machine stretch the point far beyond its
// budget.
unsigned Race::take(unsigned rounds, Stamp* stamps, char* side_of) {
  const uint64_t latest = now_ns() + uint64_t(plan_.budget_ms * 3e6);
  unsigned k = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    if (data_.rank == 0 && round >= plan_.least && now_ns() > latest) line_.halt();
    char order[most_sides];
    shuffle(round, order);
    for (int i = 0; i < plan_.side_count; ++i, ++k) {
      side_of[k] = order[i];
      if (!sample(plan_.sides[static_cast<unsigned char>(order[i])], &stamps[k])) return k;
    }
  }
  return k;
}

bool Race::gather(unsigned rounds, Point* point) {
  const unsigned most = rounds * unsigned(plan_.side_count);
  const size_t kept = data_.rank == 0 ? size_t(data_.ranks) * most : 1;
  std::unique_ptr<Stamp[]> stamps(new (std::nothrow) Stamp[most]), all(new (std::nothrow) Stamp[kept]);
  std::unique_ptr<char[]> side_of(new (std::nothrow) char[most]);
  if (sum_over_ranks(mpi_, stamps && all && side_of ? 0 : 1) != 0) return false;
  point->hop_ns[0] = line_.hop_ns();
  const unsigned total = take(rounds, stamps.get(), side_of.get());
  const uint64_t ahead = uint64_t(line_.ahead());
  for (unsigned k = 0; k < total; ++k) stamps[k].set_back(ahead);
  point->hop_ns[1] = line_.hop_ns();
  const int words = int(total * sizeof(Stamp) / sizeof(uint64_t));
  mpi_.library.Gather(stamps.get(), words, mpi_.uint64, all.get(), words, mpi_.uint64, 0, mpi_.world);
  bool good = true;
  const Stamps read{all.get(), side_of.get(), total, data_.ranks};
  for (int s = 0; data_.rank == 0 && s < plan_.side_count; ++s) good = summarise(read, reading(), s, &point->side[s]) && good;
  if (data_.rank == 0) point->waiting_us = typical_waiting_us(read, reading());
  return sum_over_ranks(mpi_, good ? 0 : 1) == 0;
}

Point Race::run() {
  Point point{};
  delays_.reset(new (std::nothrow) double[size_t(data_.ranks)]);
  point.failed = sum_over_ranks(mpi_, delays_ ? 0 : 1) != 0;
  if (point.failed) return point;
  check();
  if (batch_) calls_ = batch_calls();
  point.calls = calls_;
  settle();
  const unsigned rounds = bounded(plan_.budget_ms * 1e6 / round_ns(2), plan_.least, most_samples);
  point.failed = !gather(rounds, &point);
  check();
  point.wrong = sum_over_ranks(mpi_, wrong_);
  return point;
}

}  // namespace

Point measure(const Mpi& mpi, const Collective& collective, Data& data, Mode mode, const Plan& plan, StartLine& line) {
  return Race(mpi, collective, data, mode, plan, line).run();
}

}  // namespace stretto::bench
