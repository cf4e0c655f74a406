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

namespace {

// In as many calls as it takes.
using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);
Status copy_process_memory(Copy copy, const char* refusal, int32_t pid, uint64_t remote, char* local, size_t bytes) {
  while (bytes > 0) {
    iovec here = {local, bytes};
    iovec there = {reinterpret_cast<void*>(uintptr_t(remote)), bytes};
    ssize_t done = copy(pid, &here, 1, &there, 1, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return refused(refusal, done < 0 ? errno : EFAULT);
    local += done;
    remote += uint64_t(done);
    bytes -= size_t(done);
  }
  return Status::good();
}

}  // namespace

Status read_process_memory(int32_t pid, uint64_t remote_address, void* local, size_t bytes) {
  return copy_process_memory(process_vm_readv, "process_vm_readv cannot read the peer's memory", pid, remote_address,
                             static_cast<char*>(local), bytes);
}

Status write_process_memory(int32_t pid, uint64_t remote_address, const void* local, size_t bytes) {
  return copy_process_memory(process_vm_writev, "process_vm_writev cannot write to the peer's memory", pid, remote_address,
                             static_cast<char*>(const_cast<void*>(local)), bytes);
}

void allow_memory_readers() {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

}  // namespace stretto::platform
