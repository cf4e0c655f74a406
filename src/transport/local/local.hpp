// Ranks as threads of one process: the window is the pointer. For tests, where sanitizers see the algorithms.
#pragma once
#include <memory>

#include "transport/transport.hpp"

namespace stretto::transport {

std::unique_ptr<Transport> make_local();

}  // namespace stretto::transport
