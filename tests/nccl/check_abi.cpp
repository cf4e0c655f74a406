// Compares src/nccl/abi.hpp and src/nccl/profiler_abi.hpp with NCCL's own headers: compiles only where they agree.
//
//   tests/nccl/check_abi FOLDER    where FOLDER holds nccl.h and, where they are to be compared too, the profiler headers
//                                  (nccl_profiler.h and profiler/, from src/include/plugin of NCCL's sources)
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if __has_include(<nccl_profiler.h>)
using ncclPid_t = int;  // os.h declares it
#include <nccl_profiler.h>
#define HAVE_PROFILER
#endif

#include "nccl/abi.hpp"
#include "nccl/profiler_abi.hpp"

namespace ours = stretto::nccl;

static_assert(int(ncclSuccess) == ours::success && int(ncclInvalidUsage) == ours::invalid_usage);
static_assert(int(ncclInProgress) == ours::in_progress);
static_assert(sizeof(ncclResult_t) == sizeof(ours::Result) && sizeof(ncclDataType_t) == sizeof(ours::Datatype));
static_assert(sizeof(ncclRedOp_t) == sizeof(ours::Op) && sizeof(ncclComm_t) == sizeof(ours::Comm));
static_assert(sizeof(ncclUniqueId) == sizeof(ours::UniqueId) && alignof(ncclUniqueId) == alignof(ours::UniqueId));
static_assert(offsetof(ncclConfig_t, commName) == offsetof(ours::Config, comm_name));
static_assert(offsetof(ncclConfig_t, netName) == offsetof(ours::Config, net_name));
static_assert(NCCL_SPLIT_NOCOLOR == ours::no_color && int(ncclNumOps) == ours::op_count - 1);
static_assert(int(ncclNumTypes) == ours::datatype_count);

constexpr bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}
#define TYPE(word) static_assert(same(ours::datatypes[word].name, #word))
TYPE(ncclInt8);
TYPE(ncclUint8);
TYPE(ncclInt32);
TYPE(ncclUint32);
TYPE(ncclInt64);
TYPE(ncclUint64);
TYPE(ncclFloat16);
TYPE(ncclFloat32);
TYPE(ncclFloat64);
TYPE(ncclBfloat16);
TYPE(ncclFloat8e4m3);
TYPE(ncclFloat8e5m2);
#define OP(word) static_assert(same(ours::ops[word], #word))
OP(ncclSum);
OP(ncclProd);
OP(ncclMax);
OP(ncclMin);
OP(ncclAvg);

// Signatures, by parameters' sizes and order: ours with NCCL's types in place of ints and pointers.
template <typename F>
struct Shape;
template <typename R, typename... P>
struct Shape<R (*)(P...)> {
  static constexpr size_t sizes[] = {sizeof(R), sizeof(P)...};
};
template <typename Theirs, typename Ours>
constexpr bool alike() {
  constexpr auto& a = Shape<Theirs>::sizes;
  constexpr auto& b = Shape<Ours>::sizes;
  if (sizeof a != sizeof b) return false;
  for (size_t i = 0; i < sizeof a / sizeof a[0]; ++i)
    if (a[i] != b[i]) return false;
  return true;
}
using P = void*;
using R = int;
static_assert(alike<decltype(&ncclAllReduce), R (*)(P, P, size_t, int, int, P, P)>());
static_assert(alike<decltype(&ncclReduce), R (*)(P, P, size_t, int, int, int, P, P)>());
static_assert(alike<decltype(&ncclBroadcast), R (*)(P, P, size_t, int, int, P, P)>());
static_assert(alike<decltype(&ncclBcast), R (*)(P, size_t, int, int, P, P)>());
static_assert(alike<decltype(&ncclAllGather), R (*)(P, P, size_t, int, P, P)>());
static_assert(alike<decltype(&ncclReduceScatter), R (*)(P, P, size_t, int, int, P, P)>());
static_assert(alike<decltype(&ncclSend), R (*)(P, size_t, int, int, P, P)>());
static_assert(alike<decltype(&ncclRecv), R (*)(P, size_t, int, int, P, P)>());
static_assert(alike<decltype(&ncclCommInitRank), R (*)(P, int, ncclUniqueId, int)>());
static_assert(alike<decltype(&ncclCommInitRankConfig), R (*)(P, int, ncclUniqueId, int, P)>());
static_assert(alike<decltype(&ncclCommInitRankScalable), R (*)(P, int, int, int, P, P)>());
static_assert(alike<decltype(&ncclCommInitAll), R (*)(P, int, P)>());
static_assert(alike<decltype(&ncclCommSplit), R (*)(P, int, int, P, P)>());
static_assert(alike<decltype(&ncclCommDestroy), R (*)(P)>());
static_assert(alike<decltype(&ncclGroupSimulateEnd), R (*)(P)>());
#if STRETTO_NCCL_MINOR >= 27
static_assert(alike<decltype(&ncclCommShrink), R (*)(P, P, int, P, P, int)>());
#endif
#if STRETTO_NCCL_MINOR >= 28
static_assert(alike<decltype(&ncclAlltoAll), R (*)(P, P, size_t, int, P, P)>());
static_assert(alike<decltype(&ncclGather), R (*)(P, P, size_t, int, int, P, P)>());
static_assert(alike<decltype(&ncclScatter), R (*)(P, P, size_t, int, int, P, P)>());
#endif
#if STRETTO_NCCL_MINOR >= 30
static_assert(alike<decltype(&ncclCommGrow), R (*)(P, int, P, int, P, P)>());
#endif
#if STRETTO_NCCL_MINOR >= 32
static_assert(alike<decltype(&ncclAllReduceConfig), R (*)(P, P, size_t, int, int, P, P, P)>());
static_assert(alike<decltype(&ncclReduceConfig), R (*)(P, P, size_t, int, int, int, P, P, P)>());
static_assert(alike<decltype(&ncclBroadcastConfig), R (*)(P, P, size_t, int, int, P, P, P)>());
static_assert(alike<decltype(&ncclAllGatherConfig), R (*)(P, P, size_t, int, P, P, P)>());
static_assert(alike<decltype(&ncclReduceScatterConfig), R (*)(P, P, size_t, int, int, P, P, P)>());
static_assert(alike<decltype(&ncclAlltoAllConfig), R (*)(P, P, size_t, int, P, P, P)>());
static_assert(alike<decltype(&ncclGatherConfig), R (*)(P, P, size_t, int, int, P, P, P)>());
static_assert(alike<decltype(&ncclScatterConfig), R (*)(P, P, size_t, int, int, P, P, P)>());
#endif

#ifdef HAVE_PROFILER
using namespace ours::profiler;
#define PATH(theirs, a, ours_type, b)                            \
  static_assert(offsetof(theirs, a) == offsetof(ours_type, b) && \
                sizeof(static_cast<theirs*>(nullptr)->a) == sizeof(static_cast<ours_type*>(nullptr)->b))

static_assert(ncclProfileGroup == group && ncclProfileColl == collective && ncclProfileP2p == point_to_point);
static_assert(ncclProfileProxyOp == proxy_operation && ncclProfileProxyStep == proxy_step &&
              ncclProfileProxyCtrl == proxy_control);
static_assert(ncclProfileKernelCh == kernel_channel && ncclProfileNetPlugin == net_plugin);
static_assert(int(ncclProfilerKernelChStop) == kernel_channel_stop);
static_assert(sizeof(ncclProfilerEventDescr_v4_t) == sizeof(Descriptor4) && sizeof(ncclProfiler_v4_t) == sizeof(Plugin4));
static_assert(sizeof(ncclProfilerEventStateArgs_v4_t) == sizeof(StateArguments));
PATH(ncclProfilerEventDescr_v4_t, parentObj, Descriptor4, parent);
PATH(ncclProfilerEventDescr_v4_t, rank, Descriptor4, rank);
#define COMMON(theirs, ours_type)                                      \
  PATH(theirs, coll.seqNumber, ours_type, collective.sequence);        \
  PATH(theirs, coll.func, ours_type, collective.function);             \
  PATH(theirs, coll.sendBuff, ours_type, collective.send);             \
  PATH(theirs, coll.recvBuff, ours_type, collective.receive);          \
  PATH(theirs, coll.count, ours_type, collective.count);               \
  PATH(theirs, coll.root, ours_type, collective.root);                 \
  PATH(theirs, coll.datatype, ours_type, collective.datatype);         \
  PATH(theirs, coll.nChannels, ours_type, collective.channels);        \
  PATH(theirs, coll.algo, ours_type, collective.algorithm);            \
  PATH(theirs, coll.proto, ours_type, collective.protocol);            \
  PATH(theirs, p2p.func, ours_type, point_to_point.function);          \
  PATH(theirs, p2p.buff, ours_type, point_to_point.buffer);            \
  PATH(theirs, p2p.datatype, ours_type, point_to_point.datatype);      \
  PATH(theirs, p2p.count, ours_type, point_to_point.count);            \
  PATH(theirs, p2p.peer, ours_type, point_to_point.peer);              \
  PATH(theirs, p2p.nChannels, ours_type, point_to_point.channels);     \
  PATH(theirs, proxyOp.pid, ours_type, proxy_operation.pid);           \
  PATH(theirs, proxyOp.isSend, ours_type, proxy_operation.is_send);    \
  PATH(theirs, proxyStep.step, ours_type, proxy_step.step);            \
  PATH(theirs, kernelCh.channelId, ours_type, kernel_channel.channel); \
  PATH(theirs, kernelCh.pTimer, ours_type, kernel_channel.timer);      \
  PATH(theirs, netPlugin.id, ours_type, net_plugin.id);                \
  PATH(theirs, netPlugin.data, ours_type, net_plugin.data)
COMMON(ncclProfilerEventDescr_v4_t, Descriptor4);
#define INIT(theirs, ours_type) static_assert(alike<decltype(theirs::init), decltype(ours_type::init)>())
INIT(ncclProfiler_v4_t, Plugin4);

#define WITH_CALLS(theirs)                                                    \
  static_assert(sizeof(theirs) == sizeof(Descriptor6));                       \
  COMMON(theirs, Descriptor6);                                                \
  PATH(theirs, coll.parentGroup, Descriptor6, collective.group);              \
  PATH(theirs, p2p.parentGroup, Descriptor6, point_to_point.group);           \
  PATH(theirs, groupApi.graphCaptured, Descriptor6, group_call.captured);     \
  PATH(theirs, groupApi.groupDepth, Descriptor6, group_call.depth);           \
  PATH(theirs, collApi.func, Descriptor6, collective_call.function);          \
  PATH(theirs, collApi.count, Descriptor6, collective_call.count);            \
  PATH(theirs, collApi.datatype, Descriptor6, collective_call.datatype);      \
  PATH(theirs, collApi.root, Descriptor6, collective_call.root);              \
  PATH(theirs, collApi.graphCaptured, Descriptor6, collective_call.captured); \
  PATH(theirs, p2pApi.func, Descriptor6, point_to_point_call.function);       \
  PATH(theirs, p2pApi.count, Descriptor6, point_to_point_call.count);         \
  PATH(theirs, p2pApi.datatype, Descriptor6, point_to_point_call.datatype);   \
  PATH(theirs, p2pApi.graphCaptured, Descriptor6, point_to_point_call.captured)
#if STRETTO_NCCL_MINOR >= 28
static_assert(ncclProfileGroupApi == group_call && ncclProfileCollApi == collective_call &&
              ncclProfileP2pApi == point_to_point_call);
static_assert(ncclProfileKernelLaunch == kernel_launch && int(ncclProfilerGroupStartApiStop) == group_start_stop);
static_assert(sizeof(ncclProfiler_v5_t) == sizeof(Plugin6) && sizeof(ncclProfilerEventStateArgs_v5_t) == sizeof(StateArguments));
WITH_CALLS(ncclProfilerEventDescr_v5_t);
INIT(ncclProfiler_v5_t, Plugin6);
#endif
#if STRETTO_NCCL_MINOR >= 29
static_assert(ncclProfileCeColl == copy_collective && ncclProfileCeSync == copy_sync && ncclProfileCeBatch == copy_batch);
static_assert(sizeof(ncclProfiler_v6_t) == sizeof(Plugin6));
WITH_CALLS(ncclProfilerEventDescr_v6_t);
INIT(ncclProfiler_v6_t, Plugin6);
#endif
#endif

int main() {
  return 0;
}
