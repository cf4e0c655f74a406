#include "bench/statistics.hpp"

#include <algorithm>
#include <new>

#include "bench/ticks.hpp"

namespace stretto::bench {
namespace {

struct Span {
  uint64_t first, last, end;  // first and last arrival, last exit
};

uint64_t arrival(const Stamp& stamp, const Reading& reading) {
  return reading.planned ? stamp.planned : stamp.entry;
}

Span span_of(const Stamps& stamps, const Reading& reading, unsigned sample) {
  Span span{UINT64_MAX, 0, 0};
  for (int r = 0; r < stamps.ranks; ++r) {
    const Stamp& stamp = stamps.of(r, sample);
    span.first = std::min(span.first, arrival(stamp, reading));
    span.last = std::max(span.last, arrival(stamp, reading));
    span.end = std::max(span.end, stamp.exit);
  }
  return span;
}

double microseconds(uint64_t from, uint64_t to) {
  return to >= from ? to_ns(to - from) / 1000 : -to_ns(from - to) / 1000;
}

double sample_us(const Stamps& stamps, const Reading& reading, unsigned sample) {
  const Span span = span_of(stamps, reading, sample);
  return microseconds(reading.batch ? span.first : span.last, span.end) / reading.calls;
}

struct Sample {
  double us;
  unsigned number;
};

void fill_typical(const Stamps& stamps, unsigned sample, Seen* typical) {
  for (int r = 0; r < stamps.ranks; ++r) {
    const Stamp& stamp = stamps.of(r, sample);
    typical[r] = {microseconds(stamp.start, stamp.planned), microseconds(stamp.start, stamp.entry),
                  microseconds(stamp.start, stamp.exit)};
  }
}

void fill_exits(const Stamps& stamps, const Reading& reading, const Sample* samples, unsigned count, double* scratch,
                double* exits) {
  for (int r = 0; r < stamps.ranks; ++r) {
    for (unsigned i = 0; i < count; ++i)
      scratch[i] = microseconds(span_of(stamps, reading, samples[i].number).last, stamps.of(r, samples[i].number).exit);
    exits[r] = quantiles(scratch, count).median;
  }
}

}  // namespace

Times quantiles(double* values, unsigned count) {
  if (count == 0) return {0, 0, 0};
  std::sort(values, values + count);
  return {(values[(count - 1) / 2] + values[count / 2]) / 2, values[count / 10], values[count - 1 - count / 10]};
}

bool summarise(const Stamps& stamps, const Reading& reading, int side, SidePoint* point) {
  const auto ranks = size_t(stamps.ranks);
  std::unique_ptr<Sample[]> samples(new (std::nothrow) Sample[stamps.total + 1]);
  std::unique_ptr<double[]> scratch(new (std::nothrow) double[stamps.total + 1]);
  point->exits.reset(new (std::nothrow) double[ranks]);
  point->typical.reset(new (std::nothrow) Seen[ranks]);
  if (!samples || !scratch || !point->exits || !point->typical) return false;
  unsigned count = 0;
  for (unsigned k = 0; k < stamps.total; ++k)
    if (stamps.side_of[k] == side) samples[count] = {sample_us(stamps, reading, k), k}, ++count;
  point->samples = count;
  if (count == 0) return point->us = {}, false;
  for (unsigned i = 0; i < count; ++i) scratch[i] = samples[i].us;
  point->us = quantiles(scratch.get(), count);
  std::sort(samples.get(), samples.get() + count, [](const Sample& a, const Sample& b) { return a.us < b.us; });
  fill_typical(stamps, samples[count / 2].number, point->typical.get());
  fill_exits(stamps, reading, samples.get(), count, scratch.get(), point->exits.get());
  return true;
}

double typical_waiting_us(const Stamps& stamps, const Reading& reading) {
  std::unique_ptr<double[]> waiting(new (std::nothrow) double[stamps.total + 1]);
  if (!waiting) return 0;
  for (unsigned k = 0; k < stamps.total; ++k) {
    const uint64_t last = span_of(stamps, reading, k).last;
    double sum = 0;
    for (int r = 0; r < stamps.ranks; ++r) sum += microseconds(arrival(stamps.of(r, k), reading), last);
    waiting[k] = sum / stamps.ranks;
  }
  return quantiles(waiting.get(), stamps.total).median;
}

}  // namespace stretto::bench
