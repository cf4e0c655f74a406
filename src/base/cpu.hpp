// Who made this machine's CPUs, as far as the ways of cache lines between cores differ by it.
#pragma once
#include <cstdint>

namespace stretto {

enum class Cpu : uint8_t { other, amd, intel };

inline Cpu cpu_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("amd")) return Cpu::amd;
  if (__builtin_cpu_is("intel")) return Cpu::intel;
#endif
  return Cpu::other;
}

}  // namespace stretto
