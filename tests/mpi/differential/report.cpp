#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "compare.hpp"

namespace differential {
namespace {

std::atomic<long> made{0}, failed{0};
constexpr long described = 8;  // failures told in words by each rank; the rest are only counted

}  // namespace

Context::Context(MPI_Comm communicator, std::string name, uint64_t sequence_seed, long step_number, Limits buffer_limits)
    : comm(communicator),
      comm_name(std::move(name)),
      seed(sequence_seed),
      step(step_number),
      agreed(mix(sequence_seed, uint64_t(step_number))),
      own(0),
      limits(buffer_limits) {
  int world_rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &size_);
  own = Random(mix(mix(sequence_seed, uint64_t(step_number)), uint64_t(world_rank) + 1000));
}

long comparisons() {
  return made;
}
long failures() {
  return failed;
}
void count_comparison() {
  ++made;
}

void report_failure(const Context& context, const std::string& what) {
  if (++failed > described) return;
  char line[1024];
  int length =
      snprintf(line, sizeof line, "FAILED seed %llu step %ld rank %d of %d on %s: %s\n", (unsigned long long)context.seed,
               context.step, context.rank(), context.size(), context.comm_name.c_str(), what.c_str());
  if (write(STDERR_FILENO, line, size_t(std::min<int>(length, sizeof line - 1))) < 0) return;
}

}  // namespace differential
