// Cross-memory attach: peers' private memory read by process_vm_readv and written to by process_vm_writev.
#pragma once
#include <cstdint>
#include <memory>

#include "transport/transport.hpp"

namespace stretto::transport {

// pids[r]: process of rank r, as seen from this one; `pids` is copied.
std::unique_ptr<Transport> make_cma(const int32_t* pids, int size, int rank);

// Whether a real read from process `pid` works: reads `expected`, which that process published with its address.
Status probe_cma(int32_t pid, uint64_t address, uint64_t expected);

}  // namespace stretto::transport
