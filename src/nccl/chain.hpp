// The profiler plugin that the user asked for besides Stretto's: NCCL loads one alone, so it is loaded here and told everything.
// STRETTO_NCCL_NEXT_PLUGIN names it in the words of NCCL_PROFILER_PLUGIN.
#pragma once
#include "nccl/plugin.hpp"
#include "nccl/profiler_abi.hpp"

namespace stretto::nccl {

struct InitArguments {
  const char* comm_name;
  uint64_t comm_hash;
  int nodes, ranks, rank;
  profiler::Logger logger;
};

// version: that in which NCCL speaks. Sets context->chained and ->chained_context.
void chain_init(Context* context, int version, const InitArguments& arguments);
void chain_finalize(Context* context);

// Has NCCL tell of what this and the next plugin want, which may change as that goes.
void follow_mask(const Context* context);

// Its handle for the event.
void* chain_start(Context* context, const profiler::Descriptor4& descriptor);
void* chain_start(Context* context, const profiler::Descriptor6& descriptor);
void chain_stop(Context* context, void* handle);
void chain_record(Context* context, void* handle, profiler::State state, profiler::StateArguments* arguments);

}  // namespace stretto::nccl
