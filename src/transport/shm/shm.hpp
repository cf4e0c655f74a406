// Staged shared memory: each rank copies into its own cells, which all ranks of the team map.
#pragma once
#include <memory>

#include "transport/transport.hpp"

namespace stretto::transport {

// Where the cells are: rank r's cell c begins at base + r * rank_stride + c * cell_bytes. Mapped by every rank; the caller
// owns it. Round numbers may wrap when `cells` is a power of two.
struct Stage {
  char* base = nullptr;
  size_t rank_stride = 0;
  size_t cell_bytes = 0;
  uint32_t cells = 0;
};

std::unique_ptr<Transport> make_shm(const Stage& stage, int rank);

}  // namespace stretto::transport
