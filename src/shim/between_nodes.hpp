// What rails have given to MPI for other nodes.
#pragma once
#include <cstdint>

namespace stretto::shim {

// Bytes, of this thread so far. Where MPI moves blocks, all that go to another node from here, however it relays them; where MPI
// does the arithmetic or spreads a message, the least that leaves a node. Nonblocking collectives are not counted.
__attribute__((tls_model("initial-exec"))) extern constinit thread_local uint64_t given_to_other_nodes;

}  // namespace stretto::shim
