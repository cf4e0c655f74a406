// stretto-bench-<abi>: times the collectives of whatever MPI it is told to load. See options.cpp.
#include <stdio.h>
#include <stdlib.h>

#include <memory>
#include <new>

#include "bench/session.hpp"

namespace {

using namespace stretto::bench;

// One process that fails before MPI runs leaves nobody waiting: all of them fail.
int refuse(const char* why) {
  fprintf(stderr, "stretto-bench: %s\n", why);
  return 2;
}

const char* run(const Mpi& mpi, Options& options, int* rank) {
  Session session(mpi, options);
  const char* problem = session.open();
  *rank = session.rank();
  int ranks = 1;
  mpi.library.Comm_size(mpi.world, &ranks);
  if (problem == nullptr && options.recorded != nullptr) {
    problem = read_recorded(options.recorded, ranks, &options.pattern);
    if (sum_over_ranks(mpi, problem ? 1 : 0) != 0 && problem == nullptr) problem = "a rank cannot read the recorded delays";
  }
  if (problem == nullptr) problem = session.run();
  session.close();
  return problem;
}

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<Options> options(new (std::nothrow) Options);
  if (!options) return refuse("no memory");
  Mpi mpi{};
  const Parsed parsed = parse_options(argc, argv, true, options.get());
  if (parsed != Parsed::run) return parsed == Parsed::help ? 0 : 2;
  if (const char* problem = load_mpi(options->mpi, &mpi)) return refuse(problem);
  mpi.program.Init(&argc, &argv);
  const char* problem = find_handles(&mpi);
  if (problem != nullptr) return refuse(problem);
  int rank = 0;
  problem = run(mpi, *options, &rank);
  if (problem != nullptr && rank == 0) fprintf(stderr, "stretto-bench: %s\n", problem);
  mpi.program.Finalize();
  return problem != nullptr ? 2 : 0;
}
