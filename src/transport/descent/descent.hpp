// The descent: several direct transports as one. Each buffer is published by the first that can reach it, and read by the same.
#pragma once
#include <memory>

#include "transport/transport.hpp"

namespace stretto::transport {

inline constexpr int most_steps = 3;

// `steps` from the best to the least; null ones are left out. Null when nothing is left.
std::unique_ptr<Transport> make_descent(std::unique_ptr<Transport> (&&steps)[most_steps]);

}  // namespace stretto::transport
