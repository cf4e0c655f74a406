// The wrapped functions, and the names that stand for them in the trace.
#pragma once
#include <cstdint>

#include "trace/recorder.hpp"

namespace stretto::nccl {

// Operations: what also runs on the GPU and has a second name, "GPU nccl...", for that.
#define STRETTO_NCCL_OPERATIONS(X) \
  X(AllReduce) X(Reduce) X(Broadcast) X(AllGather) X(ReduceScatter) X(AlltoAll) X(Gather) X(Scatter) X(Send) X(Recv)
// clang-format off
#define STRETTO_NCCL_OTHERS(X) \
  X(Bcast) X(GroupStart) X(GroupEnd) X(GroupSimulateEnd) X(CommInitRank) X(CommInitAll) X(CommInitRankConfig) \
  X(CommInitRankScalable) X(CommSplit) X(CommShrink) X(CommGrow) X(CommFinalize) X(CommDestroy) X(CommAbort)
// clang-format on
// Wrapped, and traced under the name of the function without "Config".
#define STRETTO_NCCL_VARIANTS(X) \
  X(AllReduceConfig)             \
  X(ReduceConfig) X(BroadcastConfig) X(AllGatherConfig) X(ReduceScatterConfig) X(AlltoAllConfig) X(GatherConfig) X(ScatterConfig)

enum Function : uint16_t {
#define STRETTO_ENTRY(name) name,
  STRETTO_NCCL_OPERATIONS(STRETTO_ENTRY) STRETTO_NCCL_OTHERS(STRETTO_ENTRY) STRETTO_NCCL_VARIANTS(STRETTO_ENTRY)
#undef STRETTO_ENTRY
      function_count
};
inline constexpr uint16_t traced_count = AllReduceConfig;  // the variants have no names of their own
inline constexpr uint16_t operation_count = Bcast;

const char* name(Function function);  // "ncclAllReduce"

// Index in the trace's names of the interval on the GPU.
constexpr uint16_t on_gpu(Function operation) {
  return uint16_t(traced_count + operation);
}

// The names of functions and algorithms, for the trace.
trace::Tables trace_tables();

// What the profiler interface calls an operation ("AllReduce"); function_count where it is none of ours.
Function operation_named(const char* name);

// Number of an algorithm with its protocol ("RING", "LL128") among the trace's algorithm names; trace::none8: unknown.
uint8_t algorithm_named(const char* algorithm, const char* protocol);

// Value of ncclDataType_t.
int datatype_named(const char* name);

}  // namespace stretto::nccl
