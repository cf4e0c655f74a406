// What the tracer adds to a call: enter, leave and two readings of the clock.
//
// `tracer_bench --mode=full|aggregate --folder=DIR`: a process has one trace, so there is a mode for each run; the file is
// removed at the end. All other options are google-benchmark's. CPU time is what counts: it holds the page faults and system
// calls by which the file grows. In full mode the number of calls is fixed, so that the file stays below a GiB.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/clock.hpp"
#include "trace/tracer.hpp"

namespace stretto::trace {
namespace {

const char* const functions[] = {"MPI_Send", "MPI_Allreduce"};
const char* const names[] = {"none"};
const Tables tables{functions, 2, names, 1, names, 1};

void call(const CallFacts& facts) {
  const uint64_t begin = ticks();
  enter(facts, begin);
  leave(facts, begin, ticks());
}

CallFacts allreduce(uint32_t sequence, uint64_t bytes) {
  CallFacts facts;
  facts.function = 1;
  facts.communicator = facts.datatype = 0;
  facts.op = 0;
  facts.sequence = sequence;
  facts.sent = facts.received = bytes;
  facts.collective = true;
  return facts;
}

CallFacts send(int32_t partner, uint64_t bytes) {
  CallFacts facts;
  facts.communicator = facts.datatype = 0;
  facts.peer = facts.partner = partner;
  facts.direction = Direction::sent;
  facts.sent = bytes;
  return facts;
}

void bench_two_readings(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(ticks());
    benchmark::DoNotOptimize(ticks());
  }
}

void bench_one_size(benchmark::State& state) {
  uint32_t sequence = 0;
  for (auto _ : state) call(allreduce(sequence++, 1024));
}

void bench_many_sizes(benchmark::State& state) {
  uint32_t sequence = 0;
  for (auto _ : state) {
    call(allreduce(sequence, uint64_t(1) << (sequence % 24)));
    ++sequence;
  }
}

void bench_partners(benchmark::State& state) {
  uint32_t number = 0;
  for (auto _ : state) call(send(int32_t(number++ % 64), 1024));
}

void register_benches(bool is_full) {
  benchmark::RegisterBenchmark("two readings of the clock", bench_two_readings);
  benchmark::internal::Benchmark* benches[] = {benchmark::RegisterBenchmark("allreduce/one size", bench_one_size),
                                               benchmark::RegisterBenchmark("allreduce/24 sizes", bench_many_sizes),
                                               benchmark::RegisterBenchmark("send/64 partners", bench_partners)};
  for (auto* bench : benches)
    if (is_full) bench->Iterations(1'000'000);
}

// The value of --NAME=value, which is taken out of the arguments; else `fallback`.
std::string take_option(int* argc, char** argv, const std::string& name, const std::string& fallback) {
  const std::string prefix = "--" + name + "=";
  std::string value = fallback;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (std::string(argv[i]).starts_with(prefix)) {
      value = argv[i] + prefix.size();
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return value;
}

bool open(const std::string& folder, bool is_full) {
  TraceOptions options;
  options.directory = folder.c_str();
  options.mode = is_full ? Mode::full : Mode::aggregate;
  options.limit_bytes = uint64_t(8) << 30;
  const Status status = open_trace(options, tables);
  if (!status.ok()) fprintf(stderr, "tracer_bench: %s (%s)\n", status.what, strerror(status.detail));
  return status.ok();
}

void report_file() {
  const TraceHeader* header = trace_header();
  printf("event_cost_ticks: %.1f ticks a call; file: %.1f MiB; dropped: %llu\n", double(header->event_cost_ticks) / 1024,
         double(header->file_bytes) / (1 << 20), static_cast<unsigned long long>(header->dropped_events));
}

}  // namespace
}  // namespace stretto::trace

int main(int argc, char** argv) {
  using namespace stretto::trace;
  const std::string mode = take_option(&argc, argv, "mode", "full");
  char own[] = "/tmp/tracer_bench_XXXXXX";
  const std::string parent = take_option(&argc, argv, "folder", "");
  const std::string folder = parent.empty() ? mkdtemp(own) : parent;
  if (mode != "full" && mode != "aggregate") return fprintf(stderr, "tracer_bench: --mode=full|aggregate\n"), 2;
  if (!open(folder, mode == "full")) return 1;
  register_benches(mode == "full");
  benchmark::Initialize(&argc, argv);
  const bool bad = benchmark::ReportUnrecognizedArguments(argc, argv);
  if (!bad) {
    benchmark::AddCustomContext("mode", mode);
    benchmark::RunSpecifiedBenchmarks();
    report_file();
  }
  unlink((folder + "/rank-" + std::to_string(getpid()) + ".trace").c_str());
  if (parent.empty()) rmdir(own);
  return bad ? 2 : 0;
}
