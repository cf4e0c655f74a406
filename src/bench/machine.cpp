#include "bench/machine.hpp"

#include <string.h>

#include <algorithm>

#include "bench/collectives.hpp"
#include "bench/ticks.hpp"
#include "kernels/kernels.hpp"

namespace stretto::bench {
namespace {

constexpr int tries = 9;
constexpr double least_us = 20;        // of one try: then its ends do not matter
constexpr double at_one_go_us = 1000;  // within a time slice of the kernel

}  // namespace

// One rank's time for the work, once all have started.
double Machine::once_us(Work work, float* to, const float* a, const float* b, size_t count, int repeats) {
  line_.wait();
  const uint64_t begin = now_ticks();
  for (int i = 0; i < repeats; ++i) {
    const void* inputs[2] = {a, b};
    if (work == Work::copy)
      memcpy(to, a, count * sizeof *to);
    else
      kernels::reduce(kernels::Op::sum, kernels::Type::f32, inputs, 2, to, count);
    asm volatile("" : : "r"(to) : "memory");
  }
  return to_ns(now_ticks() - begin) / 1000 / repeats;
}

// The same vectors again and again: in the caches where they fit, as a program's buffers are. Where ranks take turns on the
// cores, a short piece of work is done at one go, and the others do theirs before or after it.
double Machine::measure_us(Work work, size_t bytes) {
  Data data;
  data.ranks = 2;  // two blocks to read, one to write
  if (max_over_ranks(mpi_, open_data(*collective_named("reduce_scatter", 14), bytes, mpi_.float32, &data) ? 0 : 1) > 0) return -1;
  const float *a = data.send.get(), *b = a + data.count;
  once_us(work, data.receive.get(), a, b, data.count, 1);
  const double first = max_over_ranks(mpi_, once_us(work, data.receive.get(), a, b, data.count, 1));
  const int repeats = std::clamp(int(least_us / std::max(first, 1e-3)), 1, 2000);
  double best = 0;
  for (int i = 0; i < tries; ++i) {
    const double took = max_over_ranks(mpi_, once_us(work, data.receive.get(), a, b, data.count, repeats));
    if (i == 0 || took < best) best = took;
  }
  return best * repeats < at_one_go_us ? best * turns_ : best;
}

// The least of all answers for a size: what disturbs a measurement only makes it longer.
double Machine::work_us(Work work, size_t bytes) {
  if (bytes == 0) return 0;
  Known* known = std::find_if(known_, known_ + known_count_, [&](const Known& k) { return k.work == work && k.bytes == bytes; });
  const double now = measure_us(work, bytes);
  if (now < 0) return now;
  if (known == known_ + known_count_) {
    if (known_count_ == most_known) return now;
    known_[known_count_++] = {work, bytes, now};
  }
  return known->us = std::min(known->us, now);
}

double Machine::copy_us(size_t bytes) {
  return work_us(Work::copy, bytes);
}

double Machine::add_us(size_t bytes) {
  return work_us(Work::add, bytes);
}

double Machine::message_us(size_t bytes) {
  if (ranks_ < 2) return 0;
  Data data;
  data.ranks = ranks_;
  if (max_over_ranks(mpi_, open_data(*collective_named("allreduce", 9), bytes, mpi_.float32, &data) ? 0 : 1) > 0) return -1;
  const int count = int(data.count), other = 1 - rank_;
  double best = 0;
  for (int i = 0; i < 4 * tries; ++i) {
    line_.wait();
    const uint64_t begin = now_ticks();
    if (rank_ == 0) mpi_.library.Send(data.send.get(), count, mpi_.float32, 1, 0, mpi_.world);
    if (rank_ <= 1) mpi_.library.Recv(data.receive.get(), count, mpi_.float32, other, 0, mpi_.world, MPI_STATUS_IGNORE);
    if (rank_ == 1) mpi_.library.Send(data.send.get(), count, mpi_.float32, 0, 0, mpi_.world);
    const double took = to_ns(now_ticks() - begin) / 2000;
    if (i == 0 || took < best) best = took;
  }
  return from_rank_0(mpi_, best);
}

}  // namespace stretto::bench
