// NCCL's profiler plugin interface, versions 4 to 6, written down from its documentation. Version 5 (NCCL 2.28) and 6 (2.29)
// differ in the events at the end of the union alone; version 4 is that of NCCL 2.27.
#pragma once
#include <cstddef>
#include <cstdint>

#include "nccl/abi.hpp"

namespace stretto::nccl::profiler {

enum EventType : uint64_t {
  group = 1 << 0,
  collective = 1 << 1,
  point_to_point = 1 << 2,
  proxy_operation = 1 << 3,
  proxy_step = 1 << 4,
  proxy_control = 1 << 5,
  kernel_channel = 1 << 6,
  net_plugin = 1 << 7,
  group_call = 1 << 8,  // from here on: version 5
  collective_call = 1 << 9,
  point_to_point_call = 1 << 10,
  kernel_launch = 1 << 11,
  copy_collective = 1 << 12,  // version 6
  copy_sync = 1 << 13,
  copy_batch = 1 << 14,
};

using State = int;  // ncclProfilerEventState_t
inline constexpr State kernel_channel_stop = 22;
inline constexpr State group_start_stop = 23;  // from here on: version 5

struct Descriptor4 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char* algorithm;
      const char* protocol;
    } collective;
    struct {
      const char* function;
      void* buffer;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t channels;
    } point_to_point;
    struct {
      int pid;
      uint8_t channel;
      int peer, steps, chunk, is_send;
    } proxy_operation;
    struct {
      int step;
    } proxy_step;
    struct {
      uint8_t channel;
      uint64_t timer;  // of the GPU, in ns
    } kernel_channel;
    struct {
      int64_t id;
      void* data;
    } net_plugin;
  };
};
static_assert(sizeof(Descriptor4) == 24 + 80 && offsetof(Descriptor4, collective) == 24);

struct Descriptor6 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;  // 1: the program has made no group
    } group_call;
    struct {
      const char* function;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool captured;
    } collective_call;
    struct {
      const char* function;
      size_t count;
      const char* datatype;
      void* stream;
      bool captured;
    } point_to_point_call;
    struct {
      void* stream;
    } kernel_launch;
    struct {
      uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char* algorithm;
      const char* protocol;
      void* group;
    } collective;
    struct {
      const char* function;
      void* buffer;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t channels;
      void* group;
    } point_to_point;
    struct {
      int pid;
      uint8_t channel;
      int peer, steps, chunk, is_send;
    } proxy_operation;
    struct {
      int step;
    } proxy_step;
    struct {
      uint8_t channel;
      uint64_t timer;
    } kernel_channel;
    struct {
      int64_t id;
      void* data;
    } net_plugin;
    struct {
      uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      const char* strategy;
      bool intra_batch;
      uint32_t batch, batches, number;
      void* stream;
    } copy_collective;
    struct {
      bool complete;
      int ranks;
    } copy_sync;
    struct {
      int operations;
      size_t bytes;
      bool intra_sync;
    } copy_batch;
  };
};
static_assert(sizeof(Descriptor6) == 24 + 88 && offsetof(Descriptor6, collective) == 24);

union StateArguments {
  size_t bytes;
  int appended;
  void* data;
  uint64_t timer;
};
static_assert(sizeof(StateArguments) == 8);

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

struct Plugin4 {
  const char* name;
  Result (*init)(void** context, int* mask, const char* comm_name, uint64_t comm_hash, int nodes, int ranks, int rank,
                 Logger logger);
  Result (*start)(void* context, void** handle, Descriptor4* descriptor);
  Result (*stop)(void* handle);
  Result (*record)(void* handle, State state, StateArguments* arguments);
  Result (*finalize)(void* context);
};

// Versions 5 and 6.
struct Plugin6 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_hash, int* mask, const char* comm_name, int nodes, int ranks, int rank,
                 Logger logger);
  Result (*start)(void* context, void** handle, Descriptor6* descriptor);
  Result (*stop)(void* handle);
  Result (*record)(void* handle, State state, StateArguments* arguments);
  Result (*finalize)(void* context);
};

}  // namespace stretto::nccl::profiler
