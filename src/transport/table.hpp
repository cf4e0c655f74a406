// The transports, one row each: what selection and the conformance suite know of them.
#pragma once

namespace stretto::transport {

struct Row {
  const char* name;
  bool across_processes;  // works between processes; else between threads only
  bool staged;            // copies through cells; else reads the user's buffer
};

inline constexpr Row table[] = {
    {"local", false, false},
    {"shm", true, true},
    {"cma", true, false},
};

}  // namespace stretto::transport
