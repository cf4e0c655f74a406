// nonblocking [--seed N] [--steps N] [--threads N] [--multiple] [--nodes] [--taken] section...: see check.hpp.
#include <cstdlib>
#include <cstring>

#include "check.hpp"

World world;

namespace {

// An operation that nobody waits for: MPI_Finalize does.
void leave_one() {
  static std::vector<int> in(100'000, 1), out(100'000);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), int(in.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
}

void run(const char* section) {
  if (std::strcmp(section, "random") == 0) random_operations(MPI_COMM_WORLD, world.seed, world.steps, world);
  if (std::strcmp(section, "semantics") == 0) semantics();
  if (std::strcmp(section, "persistent") == 0) persistent();
  if (std::strcmp(section, "progress") == 0) progress();
  if (std::strcmp(section, "death") == 0) death();
  if (std::strcmp(section, "threads") == 0) random_operations_in_threads(world.threads, world.seed, world.steps, world);
}

}  // namespace

int main(int argc, char** argv) {
  int provided, threaded = 0;
  bool taken = false;  // with --nodes: operations are not left to MPI
  for (int i = 1; i < argc; ++i) threaded |= std::strcmp(argv[i], "threads") == 0 || std::strcmp(argv[i], "--multiple") == 0;
  MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  MPI_Barrier(MPI_COMM_WORLD);  // what spans nodes is prepared by a blocking collective
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seed") == 0)
      world.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--steps") == 0)
      world.steps = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--threads") == 0)
      world.threads = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--nodes") == 0)
      world.plain_blocks = true;
    else if (std::strcmp(argv[i], "--taken") == 0)
      taken = true;
    else if (std::strcmp(argv[i], "--multiple") != 0)
      run(argv[i]);
  }
  long total[2] = {world.checks, world.failures}, sum[2];
  PMPI_Reduce(total, sum, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world.rank == 0) printf("%ld checks, %ld failed\n", sum[0], sum[1]);
  if (taken || !world.plain_blocks) leave_one();  // Open MPI lets no request of its own collectives be freed
  MPI_Finalize();
  return world.failures != 0;
}
