// Arenas: buffers that lie in their owner's arena (src/arena), which every peer maps as a whole. Nothing is copied: a reader gets
// the address of the peer's own bytes.
//
// A window is an offset in the owner's arena, valid for as long as the owner keeps the buffer: it publishes the window in a
// collective, and peers use it inside this collective alone. What a freed block becomes is therefore never looked at.
#pragma once
#include <cstdint>
#include <memory>

#include "transport/transport.hpp"

namespace stretto::transport {

struct Mapped {
  char* base = nullptr;
  uint64_t bytes = 0;
};

// arenas[r]: the arena of rank r as it is mapped in this process, arenas[rank] the own one; copied. A rank may have none: then
// it has no windows, and its peers can still read the others.
std::unique_ptr<Transport> make_arena(const Mapped* arenas, int size, int rank);

}  // namespace stretto::transport
