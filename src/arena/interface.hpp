// How Stretto finds the arena of its process: the arena is a library of its own (libstretto_arena.so), preloaded only where it
// is asked for, and exports one function.
#pragma once
#include <cstdint>

namespace stretto::arena {

inline constexpr uint32_t interface_version = 1;

// The arena of this process as its peers may map it: `bytes` of `fd` appear at `base`.
struct View {
  uint32_t version = interface_version;
  int fd = -1;  // stays the arena's; -1: there is none, and `why` says why not
  char* base = nullptr;
  uint64_t bytes = 0;
  const char* why = "";
};

// Name and type of the exported function: fills in the view, and makes the arena where that has not happened yet.
inline constexpr char function_name[] = "stretto_arena";
using Function = void (*)(View*);

}  // namespace stretto::arena
