// Throughput of the kernels against memcpy, in one run.
//
// bytes_per_second counts traffic as the core sees it, loads plus stores: (p + 1) x size for a reduction of p inputs and
// 2 x size for a copy, so that a reduction is as good as memcpy where the two numbers are equal. Size is bytes per buffer.
// `kernels_bench --isa=x86-64-v3` forces an instruction set; all other options are google-benchmark's.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace stretto::kernels {
namespace {

struct Free {
  void operator()(char* memory) const { free(memory); }
};
using Memory = std::unique_ptr<char, Free>;

// Page-aligned and touched. Zeros are ordinary values in every type: no subnormals slow the arithmetic down.
Memory buffer(size_t bytes) {
  Memory memory(static_cast<char*>(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
  if (!memory) abort();
  memset(memory.get(), 0, bytes);
  return memory;
}

void bench_memcpy(benchmark::State& state) {
  const size_t bytes = size_t(state.range(0));
  const Memory from = buffer(bytes), to = buffer(bytes);
  for (auto _ : state) {
    memcpy(to.get(), from.get(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(2 * bytes));
}

void bench_copy(benchmark::State& state, Store store) {
  const size_t bytes = size_t(state.range(0));
  const Memory from = buffer(bytes), to = buffer(bytes);
  for (auto _ : state) {
    copy(to.get(), from.get(), bytes, store);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(2 * bytes));
}

void bench_reduce(benchmark::State& state, Op op, Type type, int p) {
  const size_t bytes = size_t(state.range(0));
  std::vector<Memory> buffers;
  std::vector<const void*> inputs;
  for (int i = 0; i < p; ++i) {
    buffers.push_back(buffer(bytes));
    inputs.push_back(buffers.back().get());
  }
  const Memory out = buffer(bytes);
  for (auto _ : state) {
    reduce(op, type, inputs.data(), p, out.get(), bytes / size_of(type));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(size_t(p + 1) * bytes));
}

constexpr size_t kib = 1024, mib = 1024 * kib;

void all_sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(16 * kib)->Arg(256 * kib)->Arg(4 * mib)->Arg(64 * mib);
}

// Every pair once where its data sit in the second-level cache: shows which ones are not vectorised well.
void register_all_pairs() {
  for (int type = 0; type < type_count; ++type)
    for (int op = 0; op < op_count; ++op)
      if (defined(Op(op), Type(type))) {
        const std::string label = std::string("pair/") + name(Type(type)) + "/" + name(Op(op));
        benchmark::RegisterBenchmark(label.c_str(), bench_reduce, Op(op), Type(type), 2)->Arg(64 * kib);
      }
}

void register_sizes() {
  all_sizes(benchmark::RegisterBenchmark("memcpy", bench_memcpy));
  all_sizes(benchmark::RegisterBenchmark("copy/cached", bench_copy, Store::cached));
  all_sizes(benchmark::RegisterBenchmark("copy/stream", bench_copy, Store::stream));
  for (Type type : {Type::f32, Type::f64, Type::f16, Type::bf16, Type::i32})
    for (int p : {2, 4, 6, 8}) {
      const std::string label = std::string("sum/") + name(type) + "/p:" + std::to_string(p);
      all_sizes(benchmark::RegisterBenchmark(label.c_str(), bench_reduce, Op::sum, type, p));
    }
  benchmark::RegisterBenchmark("sum/f64/p:2", bench_reduce, Op::sum, Type::f64, 2)->Arg(8);  // the cost of a call
}

// Takes --isa=NAME out of the arguments; false when the CPU lacks it.
bool take_isa(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (strncmp(argv[i], "--isa=", 6) != 0) {
      argv[kept++] = argv[i];
    } else if (!select_isa(argv[i] + 6)) {
      fprintf(stderr, "kernels_bench: no instruction set \"%s\" here\n", argv[i] + 6);
      return false;
    }
  }
  *argc = kept;
  return true;
}

}  // namespace
}  // namespace stretto::kernels

int main(int argc, char** argv) {
  if (!stretto::kernels::take_isa(&argc, argv)) return 2;
  stretto::kernels::register_sizes();
  stretto::kernels::register_all_pairs();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("instruction set", stretto::kernels::isa());
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
