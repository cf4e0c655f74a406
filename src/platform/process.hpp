// Processes of this node: identity, life, and their memory.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace stretto::platform {

// pid alone is reused; pid and start time (clock ticks since boot, /proc/PID/stat field 22) are not. start 0: unknown.
struct ProcessId {
  int32_t pid = 0;
  uint32_t name_space = 0;  // inode of its PID name space; 0: unknown
  uint64_t start = 0;
};

ProcessId self_process();

// False once the process has exited, as a zombie too. True when it cannot be told.
bool process_alive(const ProcessId& process);

// Copies `bytes` from `remote_address` in process `pid` to `local` (process_vm_readv), in as many calls as it takes.
Status read_process_memory(int32_t pid, uint64_t remote_address, void* local, size_t bytes);
// The other way (process_vm_writev).
Status write_process_memory(int32_t pid, uint64_t remote_address, const void* local, size_t bytes);

// Where Yama restricts it (ptrace_scope 1), allow any process of this user to reach this one's (PR_SET_PTRACER_ANY). Best effort.
void allow_memory_readers();

}  // namespace stretto::platform
