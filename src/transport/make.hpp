// Making a transport by the name of its row in transport/table.hpp.
#pragma once
#include <cstdint>
#include <memory>

#include "transport/arena/arena.hpp"
#include "transport/shm/shm.hpp"
#include "transport/transport.hpp"

namespace stretto::transport {

// All that any transport needs to know of its team; each takes what it needs.
struct Team {
  Stage stage;                     // staged transports
  const int32_t* pids = nullptr;   // pids[r]: process of rank r, as seen from this one (cma)
  const Mapped* arenas = nullptr;  // arenas[r]: the arena of rank r, as mapped here; none where its base is null (arena)
  int size = 0;
  int rank = 0;
};

// Null when no row has this name, or when memory is out.
std::unique_ptr<Transport> make(const char* name, const Team& team);

}  // namespace stretto::transport
