#include "platform/ancestry.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace stretto::platform {
namespace {

constexpr int most_generations = 32;

// Reads /proc/<pid>/stat: the command name between the outermost parentheses, and the parent's pid after the state.
bool parent_and_name(int32_t pid, int32_t* parent, char* name, size_t name_bytes) {
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  char *open_at = strchr(text, '('), *close_at = strrchr(text, ')');
  if (open_at == nullptr || close_at == nullptr || close_at[1] == '\0' || close_at[2] == '\0') return false;
  *close_at = '\0';
  snprintf(name, name_bytes, "%s", open_at + 1);
  *parent = int32_t(strtol(close_at + 3, nullptr, 10));
  return true;
}

}  // namespace

int32_t ancestor_named(const char* const* names) {
  int32_t pid = getppid();
  for (int generation = 0; generation < most_generations && pid > 1; ++generation) {
    char name[64];
    int32_t parent = 0;
    if (!parent_and_name(pid, &parent, name, sizeof name)) return 0;
    for (const char* const* wanted = names; *wanted; ++wanted)
      if (strcmp(name, *wanted) == 0) return pid;
    pid = parent;
  }
  return 0;
}

}  // namespace stretto::platform
