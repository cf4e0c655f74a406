#include "platform/process.hpp"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/parse.hpp"

namespace stretto::platform {
namespace {

bool read_stat(int32_t pid, ProcessStat* stat) {
  char path[48], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", int(pid));
  return parse_stat(read_text(path, text, sizeof text), stat);
}

// A first thread that has exited reads as a zombie while others of its process run on.
bool has_exited(const ProcessStat& stat) {
  return stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1);
}

}  // namespace

static uint32_t pid_name_space() {
  struct stat status;
  return stat("/proc/self/ns/pid", &status) == 0 ? uint32_t(status.st_ino) : 0;
}

ProcessId self_process() {
  ProcessId self;
  self.pid = getpid();
  ProcessStat stat;
  if (read_stat(self.pid, &stat)) self.start = stat.start;
  self.name_space = pid_name_space();
  return self;
}

// The number of another PID name space says nothing here.
bool process_alive(const ProcessId& process) {
  if (process.pid <= 0 || (process.name_space != 0 && process.name_space != pid_name_space())) return true;
  ProcessStat stat;
  if (!read_stat(process.pid, &stat)) return kill(process.pid, 0) == 0 || errno != ESRCH;
  if (process.start != 0 && stat.start != process.start) return false;
  return !has_exited(stat);
}

Status read_process_memory(int32_t pid, uint64_t remote_address, void* local, size_t bytes) {
  char* to = static_cast<char*>(local);
  while (bytes > 0) {
    iovec here = {to, bytes};
    iovec there = {reinterpret_cast<void*>(uintptr_t(remote_address)), bytes};
    ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return refused("process_vm_readv cannot read the peer's memory", got < 0 ? errno : EFAULT);
    to += got;
    remote_address += uint64_t(got);
    bytes -= size_t(got);
  }
  return Status::good();
}

void allow_memory_readers() {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

}  // namespace stretto::platform
