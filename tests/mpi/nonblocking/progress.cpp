// Operations go on while a rank computes, or waits in a call that has nothing to do with them. Where they did not, this would
// never end.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <atomic>

#include "check.hpp"

namespace {

double seconds(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// The last rank calls no MPI until all others of its node have completed the operation.
void while_computing() {
  std::atomic<int>* done = nullptr;
  MPI_Win window;
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int here, ranks_here;
  MPI_Comm_rank(node, &here);
  MPI_Comm_size(node, &ranks_here);
  MPI_Win_allocate_shared(here == 0 ? sizeof(std::atomic<int>) : 0, 1, MPI_INFO_NULL, node, &done, &window);
  MPI_Aint bytes;
  int unit;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &done);
  if (here == 0) done->store(0);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<float> in(500'000, 1.0f), out(500'000, 0.0f);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), int(in.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (world.rank == world.size - 1) {
    const double begin = seconds();
    while (done->load() < ranks_here - 1 && seconds() - begin < 60) {
    }
    world.check(done->load() == ranks_here - 1, "progress while this rank computes");
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  done->fetch_add(1);
  world.check(out[0] == float(world.size) && out.back() == float(world.size), "its result");
  MPI_Win_free(&window);
  MPI_Comm_free(&node);
}

// The share of its processor time that the last to start, who finds all others there, spends in its starting call.
double share_of_start(const std::vector<double>& in, std::vector<double>& out, int block) {
  const int last = world.size - 1;
  int word = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == last)
    for (int r = 0; r < last; ++r) MPI_Recv(&word, 1, MPI_INT, r, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const double all = seconds(CLOCK_PROCESS_CPUTIME_ID), here = seconds(CLOCK_THREAD_CPUTIME_ID);
  MPI_Request request;
  MPI_Ialltoall(in.data(), block, MPI_DOUBLE, out.data(), block, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID) - here;
  if (world.rank != last) MPI_Send(&word, 1, MPI_INT, last, 8, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  double share = start / (seconds(CLOCK_PROCESS_CPUTIME_ID) - all);
  MPI_Bcast(&share, 1, MPI_DOUBLE, last, MPI_COMM_WORLD);
  return share;
}

// With a thread for that, it does not do the work itself, unless the thread gets no core for long.
void start_is_short() {
  const char* how = getenv("STRETTO_PROGRESS");
  if (how == nullptr || strcmp(how, "thread") != 0) return;
  const int block = 2'000'000 / world.size;
  std::vector<double> in(size_t(block) * size_t(world.size), world.rank), out(in.size(), -1.0);
  MPI_Alltoall(in.data(), block, MPI_DOUBLE, out.data(), block, MPI_DOUBLE, MPI_COMM_WORLD);
  double least = 1;
  for (int tries = 0; tries < 5 && least > 0.3; ++tries) {
    std::fill(out.begin(), out.end(), -1.0);
    least = std::min(least, share_of_start(in, out, block));
    for (int r = 0; r < world.size; ++r)
      world.check(out[size_t(block) * size_t(r)] == double(r), "a block that the thread has moved", r);
  }
  world.check(least < 0.3, "a start that leaves the work to the thread");
}

// Rank 0 sits in a blocking receive, for which the others need the operation that it has started.
void while_receiving() {
  std::vector<int> data(400'000, world.rank == 0 ? 3 : 0);
  MPI_Request request;
  MPI_Ibcast(data.data(), int(data.size()), MPI_INT, 0, MPI_COMM_WORLD, &request);
  int word = 0;
  if (world.rank == 0) {
    for (int r = 1; r < world.size; ++r) MPI_Recv(&word, 1, MPI_INT, r, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  }
  world.check(data[0] == 3 && data.back() == 3, "an operation during a blocking receive");
}

// The same in a blocking collective of another communicator, and in one that Stretto leaves to MPI.
void while_in_collectives(MPI_Comm other) {
  std::vector<int> data(400'000, world.rank == 0 ? 4 : 0), all(size_t(world.size) * size_t(world.size));
  for (int which = 0; which < 2; ++which) {
    MPI_Request request;
    MPI_Ibcast(data.data(), int(data.size()), MPI_INT, 0, MPI_COMM_WORLD, &request);
    if (world.rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (which == 0)
      MPI_Barrier(other);
    else
      MPI_Alltoall(data.data(), 1, MPI_INT, all.data(), 1, MPI_INT, other);
    if (world.rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    world.check(data[0] == 4 && data.back() == 4, "an operation during a collective elsewhere", which);
  }
}

}  // namespace

void progress() {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  while_computing();
  start_is_short();
  while_receiving();
  while_in_collectives(other);
  MPI_Comm_free(&other);
}
