#include "nccl/functions.hpp"

#include <string.h>

#include "nccl/abi.hpp"
#include "trace/trace.hpp"

namespace stretto::nccl {
namespace {

#define STRETTO_NAME(name) "nccl" #name,
#define STRETTO_GPU_NAME(name) "GPU nccl" #name,
constexpr const char* names[] = {STRETTO_NCCL_OPERATIONS(STRETTO_NAME) STRETTO_NCCL_OTHERS(STRETTO_NAME)
                                     STRETTO_NCCL_OPERATIONS(STRETTO_GPU_NAME)};
constexpr const char* variant_names[] = {STRETTO_NCCL_VARIANTS(STRETTO_NAME)};
#undef STRETTO_NAME
#undef STRETTO_GPU_NAME
constexpr uint32_t name_count = sizeof names / sizeof names[0];
static_assert(name_count == traced_count + operation_count);

// NCCL tells algorithm and protocol as words; the trace numbers their combinations.
constexpr const char* protocols[] = {"LL", "LL128", "SIMPLE"};
constexpr const char* algorithms[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr const char* combinations[] = {
    "TREE LL",
    "TREE LL128",
    "TREE SIMPLE",
    "RING LL",
    "RING LL128",
    "RING SIMPLE",
    "COLLNET_DIRECT LL",
    "COLLNET_DIRECT LL128",
    "COLLNET_DIRECT SIMPLE",
    "COLLNET_CHAIN LL",
    "COLLNET_CHAIN LL128",
    "COLLNET_CHAIN SIMPLE",
    "NVLS LL",
    "NVLS LL128",
    "NVLS SIMPLE",
    "NVLS_TREE LL",
    "NVLS_TREE LL128",
    "NVLS_TREE SIMPLE",
    "PAT LL",
    "PAT LL128",
    "PAT SIMPLE",
};
constexpr int protocol_count = int(sizeof protocols / sizeof protocols[0]);
constexpr int algorithm_count = int(sizeof algorithms / sizeof algorithms[0]);
static_assert(sizeof combinations / sizeof combinations[0] == size_t(protocol_count) * algorithm_count);

int find(const char* const* words, int count, const char* word) {
  for (int i = 0; word && i < count; ++i)
    if (strcmp(words[i], word) == 0) return i;
  return -1;
}

}  // namespace

const char* name(Function function) {
  return function < traced_count ? names[function] : variant_names[function - traced_count];
}

trace::Tables trace_tables() {
  trace::Tables tables{};
  tables.functions = names;
  tables.function_count = name_count;
  tables.algorithms = combinations;
  tables.algorithm_count = uint32_t(algorithm_count * protocol_count);
  return tables;
}

Function operation_named(const char* word) {
  if (!word) return function_count;
  for (uint16_t i = 0; i < operation_count; ++i)
    if (strcmp(names[i] + strlen("nccl"), word) == 0) return Function(i);
  return function_count;
}

uint8_t algorithm_named(const char* algorithm, const char* protocol) {
  const int a = find(algorithms, algorithm_count, algorithm);
  const int p = find(protocols, protocol_count, protocol);
  return a < 0 || p < 0 ? trace::none8 : uint8_t(a * protocol_count + p);
}

int datatype_named(const char* word) {
  for (int i = 0; word && i < datatype_count; ++i)
    if (strcmp(datatypes[i].name, word) == 0) return i;
  return 1;  // NCCL up to 2.30 has no name but "Unknown" for ncclUint8, and that is the only one
}

}  // namespace stretto::nccl
