#include "kernels/dispatch.hpp"

#include <string.h>

#include <atomic>

#include "kernels/isa/sets.hpp"

namespace stretto::kernels {

namespace baseline {
bool cpu_has() {
  return true;
}
}  // namespace baseline

#if defined(__x86_64__)
// The levels of the x86-64 psABI, by the features that compilers use.
namespace v2 {
bool cpu_has() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
         __builtin_cpu_supports("popcnt");
}
}  // namespace v2
namespace v3 {
bool cpu_has() {
  return v2::cpu_has() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("movbe");
}
}  // namespace v3
namespace v4 {
bool cpu_has() {
  return v3::cpu_has() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
}  // namespace v4
#endif

namespace {

// Best first; the last is always available.
constexpr const InstructionSet* sets[] = {
#if defined(__x86_64__)
    &v4::set, &v3::set, &v2::set,
#endif
    &baseline::set};

constinit std::atomic<const InstructionSet*> chosen = nullptr;

const InstructionSet* best() {
  for (const InstructionSet* set : sets)
    if (set->available()) return set;
  return &baseline::set;
}

}  // namespace

const InstructionSet& current() {
  if (const InstructionSet* set = chosen.load(std::memory_order_relaxed)) [[likely]]
    return *set;
  const InstructionSet* none = nullptr;
  chosen.compare_exchange_strong(none, best(), std::memory_order_relaxed);  // a selection made meanwhile stays
  return *chosen.load(std::memory_order_relaxed);
}

const char* isa() {
  return current().name;
}

bool select_isa(const char* name) {
  for (const InstructionSet* set : sets) {
    if (strcmp(set->name, name) != 0) continue;
    if (!set->available()) return false;
    chosen.store(set, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace stretto::kernels
