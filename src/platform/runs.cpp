#include "platform/runs.hpp"

namespace stretto::platform {
namespace {

Pattern with_period(std::span<const Run> runs, size_t period) {
  Pattern pattern{period, period, runs[period].offset - runs[0].offset};
  for (; pattern.runs < runs.size(); ++pattern.runs) {
    const Run &run = runs[pattern.runs], &former = runs[pattern.runs - period];
    if (run.bytes != former.bytes || run.offset - former.offset != pattern.distance) break;
  }
  return pattern;
}

}  // namespace

Pattern pattern_of(std::span<const Run> runs) {
  Pattern best;
  for (size_t period = 1; period <= longest_period && period < runs.size(); ++period) {
    Pattern pattern = with_period(runs, period);
    if (pattern.runs * best.period > best.runs * period) best = pattern;
  }
  return best;
}

}  // namespace stretto::platform
