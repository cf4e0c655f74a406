// libstretto_launcher.so: keeps the ranks of a node in one session where they share CPUs.
//
// Hydra, MPICH's launcher, starts every rank in a session of its own. The kernel divides processor time by session first
// (platform/scheduling.hpp), so where ranks share a CPU, a rank that waits uses up as much of it as one that computes, and the
// yields of MPI and of Stretto are in vain. `stretto run` preloads this into Hydra, and there alone. Between setsid() and
// execvp() Hydra's child learns how many ranks are to run here: a rank that shares its CPUs becomes the leader of a process
// group, which is what signals go by, and stays in the session; any other process gets the session that it asked for.
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>
#include <string_view>

#include "platform/cpus.hpp"

namespace {

bool asked_for_session = false;
int cpus = 0;  // when it asked: later it may be bound to some of them

bool is_rank_starter() {
  for (std::string_view name : {"hydra_pmi_proxy", "pmi_proxy"})
    if (name == program_invocation_short_name) return true;
  return false;
}

pid_t start_session() {
  return pid_t(syscall(SYS_setsid));
}

bool ranks_share_cpus() {
  const char* ranks = getenv("MPI_LOCALNRANKS");
  return ranks != nullptr && atoi(ranks) > cpus;
}

}  // namespace

#define STRETTO_EXPORT extern "C" __attribute__((visibility("default")))

STRETTO_EXPORT pid_t setsid() noexcept {
  if (!is_rank_starter()) return start_session();
  asked_for_session = true;
  cpus = stretto::platform::allowed_cpus().count();
  return getpid();
}

STRETTO_EXPORT int execvp(const char* file, char* const arguments[]) noexcept {
  if (asked_for_session && !(ranks_share_cpus() && setpgid(0, 0) == 0)) start_session();
  asked_for_session = false;
  return execvpe(file, arguments, environ);
}
