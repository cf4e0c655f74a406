#include "collective/mates.hpp"

#include "platform/cpus.hpp"

namespace stretto::collective {

void Mates::tell(uint64_t now) {
  if (board_ == nullptr) return;
  if (const int cpu = platform::current_cpu(); cpu != cpu_) board_->cpus[rank_].store(uint16_t(1 + (cpu_ = cpu)));
  if (now - spread_at_ < period_ns) return;
  spread_at_ = now;
  spread(now / period_ns);
}

void Mates::spread(uint64_t turn) {
  uint8_t ranks_on[platform::max_cpus] = {};
  int before = 0;  // of those on this CPU
  for (int r = 0; r < size_; ++r) {
    const int cpu = cpu_of(r);
    if (cpu < 0 || cpu >= platform::max_cpus) continue;
    if (r < rank_ && cpu == cpu_) ++before;
    ++ranks_on[cpu];
  }
  if (cpu_ < 0 || cpu_ >= platform::max_cpus || ranks_on[cpu_] < 2 || turn % ranks_on[cpu_] != uint64_t(before)) return;
  const platform::CpuSet allowed = platform::allowed_cpus();
  int best = cpu_;
  for (int k = 1; k < platform::max_cpus; ++k) {  // from here on: others that look for one at this moment find another
    const int cpu = (cpu_ + k) % platform::max_cpus;
    if (allowed.has(cpu) && ranks_on[cpu] < ranks_on[best]) best = cpu;
  }
  if (ranks_on[cpu_] - ranks_on[best] < 2 || !platform::move_to(best)) return;
  board_->cpus[rank_].store(uint16_t(1 + (cpu_ = best)));
}

}  // namespace stretto::collective
