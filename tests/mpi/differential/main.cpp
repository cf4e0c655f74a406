// Differential test: every call through MPI_X is compared with PMPI_X in the same process.
//   differential [--seed N] [--steps N] [--largest BYTES] [--live N] [--threads N] [--derived 0|1] [--same-bits 0|1] [--all 0|1]
//                [--mixed 0|1] [--late MICROSECONDS] PART...
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "communicators.hpp"
#include "compare.hpp"
#include "sections.hpp"

namespace differential {

void threaded_sequence(const Options& options) {
  std::vector<MPI_Comm> comms(static_cast<size_t>(options.threads));
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Limits limits{options.largest / 16, options.derived, options.same_bits};
#ifdef MPICH_VERSION
  limits.derived = false;  // MPICH 5.0 unpacks derived types wrongly, now and then, when several threads do it
#endif
  std::vector<std::thread> threads;
  for (size_t t = 0; t < comms.size(); ++t)
    threads.emplace_back([&, t] {
      for (long step = 0; step < std::max(5L, options.steps / 10); ++step) {
        Context context(comms[t], "thread " + std::to_string(t), mix(options.seed, 100 + t), step, limits);
        compare_any(context);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

namespace {

using Part = void (*)(const Options&);

const std::map<std::string, Part>& parts() {
  static const std::map<std::string, Part> table = {{"random", random_sequence},
                                                    {"traffic", pending_traffic},
                                                    {"many", many_communicators},
                                                    {"threads", threaded_sequence},
                                                    {"passed", passed_through}};
  return table;
}

struct CommandLine {
  Options options;
  std::vector<std::string> chosen;
};

CommandLine parse(int argc, char** argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      line.chosen.push_back(word);
      continue;
    }
    long long value = i + 1 < argc ? atoll(argv[++i]) : 0;
    if (word == "--seed") line.options.seed = uint64_t(value);
    if (word == "--steps") line.options.steps = long(value);
    if (word == "--largest") line.options.largest = size_t(value);
    if (word == "--live") line.options.live = int(value);
    if (word == "--all") line.options.all = value != 0;
    if (word == "--mixed") line.options.mixed = value != 0;
    if (word == "--derived") line.options.derived = value != 0;
    if (word == "--same-bits") line.options.same_bits = value != 0;
    if (word == "--late") line.options.late_us = long(value);
    if (word == "--threads") line.options.threads = int(value);
  }
  return line;
}

bool needs_threads(const CommandLine& line) {
  for (const std::string& name : line.chosen)
    if (name == "threads") return true;
  return false;
}

// Adds up what all ranks compared; rank 0 says it. The exit code is rank 0's knowledge of all.
int conclude(uint64_t seed) {
  if (long n = unknown_datatypes()) fprintf(stderr, "FAILED a user operation got a datatype nobody passed, %ld times\n", n);
  long mine[2] = {comparisons(), failures() + unknown_datatypes()}, all[2] = {0, 0};
  PMPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("differential: seed %llu, %ld comparisons, %ld failed\n", (unsigned long long)seed, all[0], all[1]);
  return all[1] != 0;
}

int run(const CommandLine& line) {
  for (const std::string& name : line.chosen) {
    auto part = parts().find(name);
    if (part == parts().end()) {
      fprintf(stderr, "no such part: %s\n", name.c_str());
      return 2;
    }
    part->second(line.options);
  }
  free_user_operations();
  return conclude(line.options.seed);
}

}  // namespace
}  // namespace differential

int main(int argc, char** argv) {
  using namespace differential;
  CommandLine line = parse(argc, argv);
  int provided = MPI_THREAD_SINGLE;
  if (needs_threads(line))
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  if (needs_threads(line) && provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");
    return 3;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int status = run(line);
  MPI_Finalize();
  return status;
}
