#include "bench/far_line.hpp"

#include <algorithm>

#include "bench/ticks.hpp"

namespace stretto::bench {
namespace {

constexpr int round_trips = 12;
constexpr int tries = 6;
constexpr int clock_tag = 77;

}  // namespace

void FarLine::open(const Mpi& mpi, int rank, int ranks, int first_elsewhere) {
  mpi_ = &mpi;
  rank_ = rank;
  ranks_ = ranks;
  first_elsewhere_ = first_elsewhere;
  set_clocks();
  find_lead();
}

// By rank 0 and another: the shortest of several round trips tells the other's clock best, within half of what it takes. That
// half.
double FarLine::compare_with(int other) {
  const Calls& calls = mpi_->library;
  uint64_t shortest = UINT64_MAX, theirs = 0;
  int64_t ahead = 0;
  for (int i = 0; i < round_trips; ++i) {
    const uint64_t begin = now_ticks();
    if (rank_ == 0) {
      calls.Send(&theirs, 1, mpi_->uint64, other, clock_tag, mpi_->world);
      calls.Recv(&theirs, 1, mpi_->uint64, other, clock_tag, mpi_->world, MPI_STATUS_IGNORE);
      const uint64_t took = now_ticks() - begin;
      if (took >= shortest) continue;
      shortest = took;
      ahead = int64_t(theirs - (begin + took / 2));
    } else {
      calls.Recv(&theirs, 1, mpi_->uint64, 0, clock_tag, mpi_->world, MPI_STATUS_IGNORE);
      theirs = now_ticks();
      calls.Send(&theirs, 1, mpi_->uint64, 0, clock_tag, mpi_->world);
    }
  }
  if (rank_ == 0) calls.Send(&ahead, sizeof ahead, mpi_->byte, other, clock_tag, mpi_->world);
  if (rank_ != 0) calls.Recv(&ahead_, sizeof ahead_, mpi_->byte, 0, clock_tag, mpi_->world, MPI_STATUS_IGNORE);
  return to_ns(shortest) / 2;
}

double FarLine::set_clocks() {
  double hop = 0;
  for (int other = 1; rank_ == 0 && other < ranks_; ++other) {
    const double half = compare_with(other);
    if (other == first_elsewhere_) hop = half;
  }
  if (rank_ != 0) compare_with(0);
  return from_rank_0(*mpi_, hop);
}

// What a broadcast takes to reach the last one.
void FarLine::find_lead() {
  double longest = 0;
  for (int i = 0; i < tries; ++i) {
    mpi_->library.Barrier(mpi_->world);
    uint64_t sent = now_ticks();
    mpi_->library.Bcast(&sent, 1, mpi_->uint64, 0, mpi_->world);
    longest = std::max(longest, to_ns(uint64_t(std::max<int64_t>(int64_t(now_ticks() - sent) - ahead_, 0))));
  }
  lead_ns_ = 1.5 * max_over_ranks(*mpi_, longest) + 10'000;
}

void FarLine::meet() {
  mpi_->library.Barrier(mpi_->world);
}

bool FarLine::wait(double delay_ns, uint64_t* planned, uint64_t* start) {
  meet();
  Told told{now_ticks() + from_ns(lead_ns_), halts_};
  mpi_->library.Bcast(&told, sizeof told, mpi_->byte, 0, mpi_->world);
  *start = told.start + uint64_t(ahead_);
  *planned = *start + from_ns(delay_ns);
  halts_ = false;
  if (told.halts != 0) return false;
  sleep_until(*planned);
  while (now_ticks() < *planned) cpu_relax();
  return true;
}

}  // namespace stretto::bench
