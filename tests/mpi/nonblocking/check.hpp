// What the sections of the test share.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <vector>

// A stream of numbers that depends on its seed only.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761u + 88172645463325252u) {
    for (int i = 0; i < 8; ++i) next();
  }
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  int below(int limit) { return int(next() % uint64_t(limit)); }

 private:
  uint64_t state_;
};

struct World {
  int rank = 0, size = 1;
  uint64_t seed = 1;
  int steps = 100;
  int threads = 2;
  bool plain_blocks = false;  // ranks over nodes, of which blocks do not differ more than most MPIs stand
  long checks = 0, failures = 0;

  bool check(bool good, const char* what, long step = -1) {
    ++checks;
    if (good) return true;
    if (++failures <= 10) fprintf(stderr, "FAILED  rank %d: %s (step %ld)\n", rank, what, step);
    return false;
  }
};

extern World world;

// Each is collective over MPI_COMM_WORLD.
void random_operations(MPI_Comm comm, uint64_t seed, int steps, World& result);  // random.cpp
void random_operations_in_threads(int threads, uint64_t seed, int steps, World& result);
void semantics();   // semantics.cpp
void persistent();  // persistent.cpp
void progress();    // progress.cpp
void death();       // death.cpp
