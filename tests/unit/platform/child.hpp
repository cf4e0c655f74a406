// Forked children as tests need them: what they find out comes back as their exit code.
#pragma once
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// For the body of a child: gives up with a line on standard error and exit code 1.
#define CHILD_REQUIRE(condition)                                                     \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                      \
    }                                                                                \
  } while (false)

namespace stretto::testing {

inline constexpr int child_skipped = 77;  // exit code: this machine does not let us try

// Starts a child that runs `body` and exits with what it returns; it cannot outlive 60 seconds.
template <class Body>
pid_t start_child(Body body) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  alarm(60);
  _exit(body());
}

// Waits for the child: its exit code, or 128 + signal.
inline int finish_child(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

template <class Body>
int exit_code_of(Body body) {
  return finish_child(start_child(body));
}

inline int count_entries(const char* directory) {
  DIR* d = opendir(directory);
  if (d == nullptr) return -1;
  int count = 0;
  while (dirent* entry = readdir(d)) count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  closedir(d);
  return count;
}

inline int open_descriptors() {
  return count_entries("/proc/self/fd");
}

}  // namespace stretto::testing
