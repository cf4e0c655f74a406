// Which collectives Mode::aggregate keeps as events: few enough to bound the file, the same ones on all ranks.
//
// The first 2^base of a communicator are kept, then about 2^(base-1) of each further octave of the sequence numbers, chosen by
// a hash: evenly spaced ones would always meet the same collectives of an iteration of even length. What a smaller base keeps, a
// larger one keeps too: so ranks on which a communicator has another index, and therefore another base, still have the smaller
// set in common. docs/trace_format.md states the rule for readers.
#pragma once
#include <bit>
#include <cstdint>

namespace stretto::trace {

// base -1: none.
constexpr int sampling_base(uint16_t communicator) {
  if (communicator < 8) return 12;
  if (communicator < 64) return 8;
  return communicator < 1024 ? 4 : -1;
}

constexpr uint32_t sampling_hash(uint32_t sequence) {
  uint32_t hash = sequence * 0x9e3779b1u;
  hash = (hash ^ (hash >> 15u)) * 0x85ebca77u;
  return hash ^ (hash >> 13u);
}

constexpr bool sampled(int base, uint32_t sequence) {
  if (base < 0) return false;
  const int octave = std::bit_width(sequence) - base;  // 0 or less: among the first 2^base
  return octave <= 0 || sampling_hash(sequence) >> (32 - octave) == 0;
}

constexpr bool keeps_event(uint16_t communicator, uint32_t sequence) {
  return sampled(sampling_base(communicator), sequence);
}

// How many events are kept of one communicator, on an average: 2^base and 2^(base-1) for each octave up to 2^32.
constexpr uint64_t mean_sampled(int base) {
  return base < 0 ? 0 : (uint64_t(1) << base) + uint64_t(32 - base) * (uint64_t(1) << (base - 1));
}

}  // namespace stretto::trace
