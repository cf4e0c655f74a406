// The profiler plugin as NCCL finds it: ncclProfiler_v4, _v5 and _v6. NCCL takes the newest that it knows.
#include "nccl/chain.hpp"
#include "nccl/plugin.hpp"
#include "nccl/session.hpp"

namespace stretto::nccl {
namespace {

using namespace profiler;

// Wherever NCCL leaves a handle out, so does this: a null handle is never stopped.
Handle* own_event(Context* context, const Descriptor4& d) {
  Handle* parent = static_cast<Handle*>(d.parent);
  switch (d.type) {
    case collective: {
      const auto& c = d.collective;
      const Operands operands{operation_named(c.function), c.send, c.receive, c.count,
                              datatype_named(c.datatype),  -1,     c.root,    nullptr};
      return start_task(context, parent, {operands, c.algorithm, c.protocol, c.channels});
    }
    case point_to_point: {
      const auto& p = d.point_to_point;  // newer NCCL do not say here how many channels there are
      const Operands operands{operation_named(p.function), p.buffer, p.buffer, p.count,
                              datatype_named(p.datatype),  -1,       p.peer,   nullptr};
      return start_task(context, parent, {operands, nullptr, nullptr, 1});
    }
    case kernel_channel:
      return start_channel(context, parent, d.kernel_channel.timer);
    default:
      return nullptr;
  }
}

Handle* own_event(Context* context, const Descriptor6& d) {
  Handle* parent = static_cast<Handle*>(d.parent);
  switch (d.type) {
    case group_call:
      return start_group(context, d.group_call.depth > 1);
    case collective_call: {
      const auto& c = d.collective_call;
      const Operands operands{operation_named(c.function), nullptr, nullptr, c.count,
                              datatype_named(c.datatype),  -1,      c.root,  nullptr};
      return start_call(context, parent, operands, c.captured);
    }
    case point_to_point_call: {
      const auto& p = d.point_to_point_call;
      const Operands operands{operation_named(p.function), nullptr, nullptr, p.count,
                              datatype_named(p.datatype),  -1,      -1,      nullptr};
      return start_call(context, parent, operands, p.captured);
    }
    case collective: {
      const auto& c = d.collective;
      const Operands operands{operation_named(c.function), c.send, c.receive, c.count,
                              datatype_named(c.datatype),  -1,     c.root,    nullptr};
      return start_task(context, parent, {operands, c.algorithm, c.protocol, c.channels});
    }
    case point_to_point: {
      const auto& p = d.point_to_point;
      const Operands operands{operation_named(p.function), p.buffer, p.buffer, p.count,
                              datatype_named(p.datatype),  -1,       p.peer,   nullptr};
      return start_task(context, parent, {operands, nullptr, nullptr, p.channels});
    }
    case kernel_channel:
      return start_channel(context, parent, d.kernel_channel.timer);
    case copy_collective:
      launched_otherwise(parent);
      return nullptr;
    default:
      return nullptr;
  }
}

// NCCL's proxy thread works for other processes too (PXN), and then tells of it with a context of theirs.
bool may_be_foreign(uint64_t type) {
  return type & (proxy_operation | proxy_step | net_plugin);
}

template <typename Descriptor>
Result start_event(void* opaque, void** handle, Descriptor* descriptor) {
  Context* context = static_cast<Context*>(opaque);
  *handle = nullptr;
  if (!context || (may_be_foreign(descriptor->type) && !is_context(context))) return success;
  if (context->ended.load(std::memory_order_acquire)) return success;
  Handle* own = context->own_mask ? own_event(context, *descriptor) : nullptr;
  if (context->chained) {
    void* chained = chain_start(context, *descriptor);
    if (!own && chained) own = start_other(context);
    if (own) own->chained = chained;
    if (!own) chain_stop(context, chained);  // no memory for a handle: it ends at once
  }
  *handle = own;
  return success;
}

Result stop_event(void* opaque) {
  Handle* handle = static_cast<Handle*>(opaque);
  if (!handle) return success;
  chain_stop(handle->context, handle->chained);
  stop(handle);
  return success;
}

Result record_event(void* opaque, State state, StateArguments* arguments) {
  Handle* handle = static_cast<Handle*>(opaque);
  if (!handle) return success;
  if (state == kernel_channel_stop && arguments) stop_channel_at(handle, arguments->timer);
  chain_record(handle->context, handle->chained, state, arguments);
  return success;
}

Result init(void** opaque, int* mask, int version, const InitArguments& a) {
  profiled();  // reads the settings
  Context* context = make_context(a.comm_name, a.comm_hash, a.nodes, a.ranks, a.rank);
  *opaque = context;
  if (!context) return success;
  context->version = version;
  context->own_mask = wanted_events(version);
  context->mask = mask;
  chain_init(context, version, a);
  follow_mask(context);
  return success;
}

Result init_4(void** context, int* mask, const char* comm_name, uint64_t comm_hash, int nodes, int ranks, int rank,
              Logger logger) {
  return init(context, mask, 4, {comm_name, comm_hash, nodes, ranks, rank, logger});
}

template <int version>
Result init_6(void** context, uint64_t comm_hash, int* mask, const char* comm_name, int nodes, int ranks, int rank,
              Logger logger) {
  return init(context, mask, version, {comm_name, comm_hash, nodes, ranks, rank, logger});
}

Result finalize(void* opaque) {
  Context* context = static_cast<Context*>(opaque);
  if (!context) return success;
  end_context(context);
  chain_finalize(context);
  return success;
}

}  // namespace
}  // namespace stretto::nccl

using namespace stretto::nccl;

#define STRETTO_EXPORT_DATA extern "C" __attribute__((visibility("default")))

STRETTO_EXPORT_DATA const profiler::Plugin4 ncclProfiler_v4;
STRETTO_EXPORT_DATA const profiler::Plugin6 ncclProfiler_v5;
STRETTO_EXPORT_DATA const profiler::Plugin6 ncclProfiler_v6;

const profiler::Plugin4 ncclProfiler_v4 = {"Stretto",  init_4,       start_event<profiler::Descriptor4>,
                                           stop_event, record_event, finalize};
const profiler::Plugin6 ncclProfiler_v5 = {"Stretto",  init_6<5>,    start_event<profiler::Descriptor6>,
                                           stop_event, record_event, finalize};
const profiler::Plugin6 ncclProfiler_v6 = {"Stretto",  init_6<6>,    start_event<profiler::Descriptor6>,
                                           stop_event, record_event, finalize};
