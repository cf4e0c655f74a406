// Ranks as processes, without MPI: what the tests of the engine stand on.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "engine/job.hpp"

namespace stretto::engine {

inline std::string unique_job() {
  static int counter = 0;
  return "engine-test-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
}

// Runs body(rank) in `ranks` processes; each must return true.
inline void in_processes(int ranks, const std::function<bool(int)>& body) {
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    pid_t child = fork();
    if (child == 0) _exit(body(r) ? 0 : 1);
    children.push_back(child);
  }
  for (int r = 0; r < ranks; ++r) {
    int status = 0;
    waitpid(children[size_t(r)], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << r << " status " << status;
  }
}

inline select::Rules rules_of(const char* text) {
  select::Rules rules;
  EXPECT_TRUE(select::parse_rules(text, std::strlen(text), &rules).ok());
  return rules;
}

inline Settings quick(uint64_t timeout_ms = 20000) {
  Settings settings;
  settings.join_timeout_ms = timeout_ms;
  return settings;
}

inline Place place_of(int rank, int size, const std::string& job) {
  return {rank, size, rank, size, job.c_str()};
}

// Stands in for MPI while a communicator is made: a word that rank 0 sets in memory the processes share.
struct Stand {
  std::atomic<uint64_t> value{0};
  std::atomic<uint32_t> set{0}, votes{0}, yes{0}, read{0};
  int size = 0;
};
inline Stand* stand;
inline int stand_rank;

inline bool stand_broadcast(void*, void* data, int) {
  if (stand_rank == 0) {
    stand->value = *static_cast<uint64_t*>(data);
    stand->set.fetch_add(1);
  }
  while (stand->set.load() == 0) usleep(100);
  *static_cast<uint64_t*>(data) = stand->value;
  return true;
}

inline bool stand_all(void*, bool own) {
  stand->yes.fetch_add(own);
  stand->votes.fetch_add(1);
  while (stand->votes.load() < uint32_t(stand->size)) usleep(100);
  return stand->yes.load() == uint32_t(stand->size);
}

inline void make_stand(int size) {
  stand = new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Stand;
  stand->size = size;
}

}  // namespace stretto::engine
