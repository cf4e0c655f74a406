// A transport that misbehaves on purpose: wraps a real one and delays, refuses or cuts it.
#pragma once
#include <cstdint>
#include <memory>

#include "transport/transport.hpp"

namespace stretto::transport {

struct Faults {
  uint64_t delay_ns = 0;            // slept before every get, give and put
  uint32_t refuse_every = 0;        // every n-th get or give is refused; 0: none
  uint64_t cut_after = UINT64_MAX;  // gets and gives that succeed before all further ones are refused
};

std::unique_ptr<Transport> make_fault(std::unique_ptr<Transport> inner, const Faults& faults);

// Parses "delay=20us,refuse=3,cut=100" (any subset, any order; ns, us, ms). invalid when it does not read so.
Status parse_faults(const char* text, Faults* faults);

}  // namespace stretto::transport
