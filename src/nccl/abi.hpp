// What this library must know of NCCL's C interface, written down from its documentation: no nccl.h is needed to build.
// NCCL 2 keeps these unchanged and only appends; docs/nccl.md says which versions were compared.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::nccl {

using Result = int;  // ncclResult_t
inline constexpr Result success = 0;
inline constexpr Result invalid_usage = 5;
inline constexpr Result in_progress = 7;

using Comm = struct OpaqueComm*;
using Stream = void*;  // cudaStream_t
using Datatype = int;  // ncclDataType_t
using Op = int;        // ncclRedOp_t
inline constexpr int no_color = -1;

struct UniqueId {
  char internal[128];
};

// The beginning of ncclConfig_t, up to the last member that is read here.
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char* net_name;
  int split_share, traffic_class;
  const char* comm_name;
};
static_assert(offsetof(Config, comm_name) == 48);

struct DatatypeRow {
  const char* name;
  uint32_t bytes;
};

// By the value of ncclDataType_t.
inline constexpr DatatypeRow datatypes[] = {
    {"ncclInt8", 1},    {"ncclUint8", 1},   {"ncclInt32", 4},   {"ncclUint32", 4},   {"ncclInt64", 8},      {"ncclUint64", 8},
    {"ncclFloat16", 2}, {"ncclFloat32", 4}, {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1},
};
inline constexpr int datatype_count = int(sizeof datatypes / sizeof datatypes[0]);

// By the value of ncclRedOp_t; what ncclRedOpCreatePreMulSum makes has larger values.
inline constexpr const char* ops[] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin", "ncclAvg", "ncclPreMulSum"};
inline constexpr int op_count = int(sizeof ops / sizeof ops[0]);

}  // namespace stretto::nccl
