#include "collective/mates.hpp"

#include "platform/cpus.hpp"

namespace stretto::collective {

void Mates::tell(uint64_t now) {
  constexpr uint64_t period_ns = 5'000'000;
  if (board_ == nullptr) return;
  if (const int cpu = platform::current_cpu(); cpu != cpu_) board_->cpus[rank_].store(uint16_t(1 + (cpu_ = cpu)));
  if (now - spread_at_ < period_ns) return;
  spread_at_ = now;
  spread();
}

void Mates::spread() {
  uint8_t ranks_on[platform::max_cpus] = {};
  for (int r = 0; r < size_; ++r) {
    const int cpu = cpu_of(r);
    if (r > rank_ && cpu == cpu_) return;  // that one sees to it
    if (cpu >= 0 && cpu < platform::max_cpus) ++ranks_on[cpu];
  }
  if (cpu_ < 0 || cpu_ >= platform::max_cpus || ranks_on[cpu_] < 2) return;
  const platform::CpuSet allowed = platform::allowed_cpus();
  int best = cpu_;
  for (int cpu = 0; cpu < platform::max_cpus; ++cpu)
    if (allowed.has(cpu) && ranks_on[cpu] < ranks_on[best]) best = cpu;
  if (ranks_on[cpu_] - ranks_on[best] < 2 || !platform::move_to(best)) return;
  board_->cpus[rank_].store(uint16_t(1 + (cpu_ = best)));
}

}  // namespace stretto::collective
