#include "collective/mates.hpp"

#include "platform/cpus.hpp"

namespace stretto::collective {
namespace {

// Where several threads of a process wait, a rank stands on several CPUs: moved one by one they get into each other's way. (Four
// ranks of four threads on two CPUs beside three busy processes took several times as long.)
class WaitingThreads {
 public:
  // Whether this thread, which waits, is the only one of the process that has for some time.
  bool is_alone(uint64_t now) {
    constexpr uint64_t some_time_ns = 10'000'000'000;
    __attribute__((tls_model("initial-exec"))) static thread_local char self;
    const void* const before = last_.exchange(&self, std::memory_order_relaxed);
    if (before != &self && before != nullptr) changed_at_.store(now, std::memory_order_relaxed);
    const uint64_t changed_at = changed_at_.load(std::memory_order_relaxed);
    return changed_at == 0 || now - changed_at > some_time_ns;
  }

 private:
  std::atomic<const void*> last_{nullptr};
  std::atomic<uint64_t> changed_at_{0};
};

constinit WaitingThreads waiting_threads;

}  // namespace

void Mates::tell(uint64_t now) {
  if (board_ == nullptr) return;
  if (const int cpu = platform::current_cpu(); cpu != cpu_) board_->cpus[rank_].store(uint16_t(1 + (cpu_ = cpu)));
  const bool is_alone = waiting_threads.is_alone(now);
  if (now - spread_at_ < period_ns || !is_alone) return;
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
