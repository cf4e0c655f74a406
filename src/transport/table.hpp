// The transports, one row each: what selection and the conformance suite know of them.
#pragma once

namespace stretto::transport {

struct Row {
  const char* name;
  bool across_processes;  // works between processes; else between threads only
  bool staged;            // copies through cells; else reads the user's buffer
  bool arena_only;        // reads buffers that lie in their owner's arena, and no others
};

inline constexpr Row table[] = {
    {"local", false, false, false},
    {"shm", true, true, false},
    {"cma", true, false, false},
    {"arena", true, false, true},
};

}  // namespace stretto::transport
